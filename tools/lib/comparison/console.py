"""Command lines of comparisons: lists in arguments, progress with the time left, and interruptions."""

import argparse
import os
import signal
import sys
import time


def list_of(known):
    """For argparse: comma separated, each one of `known`."""

    def check(text):
        values = text.split(",")
        for value in values:
            if value not in known:
                raise argparse.ArgumentTypeError(f"{value} is none of {', '.join(known)}")
        return values

    return check


def make_folder(parser, folder):
    """For the results, before anything is measured; wrong use where it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as why:
        parser.error(f"--out {folder}: {why.strerror}")
    if not os.access(folder, os.W_OK | os.X_OK):
        parser.error(f"--out {folder}: it may not be written")


def end_as_interrupted():
    """The first Ctrl-C, SIGTERM or loss of the terminal (but under nohup) is a KeyboardInterrupt; later ones are ignored,
    so that what was made is taken away and what was measured is written."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def interrupt(*_):
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in numbers:
        signal.signal(number, interrupt)


class Progress:
    """What is being done and how long the rest will take, on a terminal only."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.start = time.monotonic()

    def show(self, what):
        if not sys.stderr.isatty():
            return
        left = ""
        if self.done:
            seconds = (time.monotonic() - self.start) / self.done * (self.total - self.done)
            left = f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
        sys.stderr.write(f"\r\033[K{self.done + 1} of {self.total}: {what}{left}")
        sys.stderr.flush()

    def finish(self):
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
