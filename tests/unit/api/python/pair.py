"""Two contexts of this process, connected, and progress for both; shared by the tests."""

import contextlib
import time
import unittest.mock

import paceline
from paceline import _abi

TIMEOUT_S = 20


class Pair:
    """`a` and `b` are the contexts, `to_b` and `to_a` their ends of one connection."""

    def __init__(self, stack, **options):
        # Who closes does not wait for the other, which stands still meanwhile.
        options = {"environment": False, "linger_ms": 1, **options}
        self.a = stack.enter_context(paceline.Context(**options))
        self.b = stack.enter_context(paceline.Context(**options))
        self.listener = self.b.listen()
        self.to_b = self.a.connect(self.listener.handle)
        self.to_a = None
        self.until(self._connected)

    def until(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            self.a.progress()
            self.b.progress()
            if time.monotonic() > deadline:
                raise AssertionError("what was waited for did not come")

    def finish(self, *operations):
        """Until all of them are done; the last one's completion, or its exception."""
        self.until(lambda: all(operation.done for operation in operations))
        return [operation.result() for operation in operations][-1]

    def _connected(self):
        self.to_a = self.to_a or self.listener.try_accept()
        return self.to_a is not None and self.to_a.established and self.to_b.established


@contextlib.contextmanager
def pair(**options):
    with contextlib.ExitStack() as stack:
        yield Pair(stack, **options)


class Stop(BaseException):
    """What a signal handler raises."""


@contextlib.contextmanager
def instead_of(name, function):
    """`function` gets that function of the library, too, before its arguments."""
    real = getattr(_abi.functions, name)
    with unittest.mock.patch.object(_abi.functions, name, lambda *arguments: function(real, *arguments)):
        yield


def raises_after(name):
    """The first call of that function of the library that answers OK, or a number of completions, is followed by Stop,
    as if a signal had come."""
    left = [True]

    def call(real, *arguments):
        answer = real(*arguments)
        if left and (answer > 0 if name == "poll_sized" else answer == _abi.OK):
            left.clear()
            raise Stop
        return answer

    return instead_of(name, call)
