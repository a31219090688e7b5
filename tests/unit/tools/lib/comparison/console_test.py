"""Which signals interrupt a comparison; each in a process of its own."""

import pathlib
import signal
import subprocess
import sys
import unittest

LIBRARY = pathlib.Path(__file__).resolve().parents[5] / "tools/lib"

# Two signals; what is to be taken away and written at the end is.
PROGRAM = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
signal.signal(signal.SIGHUP, signal.Handlers(int(sys.argv[3])))
from comparison import console
console.end_as_interrupted()
try:
    os.kill(os.getpid(), int(sys.argv[2]))
    print("went on")
except KeyboardInterrupt:
    os.kill(os.getpid(), int(sys.argv[2]))
    print("interrupted")
"""


def after(number, hangup=signal.SIG_DFL):
    line = [sys.executable, "-c", PROGRAM, str(LIBRARY), str(int(number)), str(int(hangup))]
    return subprocess.run(line, capture_output=True, text=True).stdout.strip()


class EndAsInterrupted(unittest.TestCase):
    def test_what_ends_a_program_interrupts_it_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(after(number), "interrupted", number)

    def test_under_nohup_the_loss_of_the_terminal_is_nothing(self):
        self.assertEqual(after(signal.SIGHUP, signal.SIG_IGN), "went on")
        self.assertEqual(after(signal.SIGTERM, signal.SIG_IGN), "interrupted")


if __name__ == "__main__":
    unittest.main()
