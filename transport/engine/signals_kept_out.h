// While it lives this thread is sent no signals, and the threads that it starts never are: those of a program are for
// the program's own threads, which may have blocked them and wait for them. Faults of the thread itself are not kept
// out, nor is the clock of profilers.
//
// Thread rule: ends on the thread that made it.
#pragma once

#include <signal.h>

namespace paceline {

class SignalsKeptOut {
 public:
  SignalsKeptOut() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsKeptOut() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsKeptOut(const SignalsKeptOut&) = delete;
  SignalsKeptOut& operator=(const SignalsKeptOut&) = delete;

 private:
  sigset_t before_;
};

}  // namespace paceline
