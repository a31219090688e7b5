"""Results of the C interface as exceptions. All are Errors; where Python has a kind of its own for it they are that,
too."""

from paceline import _abi


class Error(Exception):
    """`code`: the paceline_result as a number; `name`: its name; the text says what was wrong."""

    code = None

    def __init__(self, text=""):
        self.name = _abi.functions.result_name(self.code).decode() if self.code is not None else "error"
        super().__init__(f"{self.name}: {text}" if text else self.name)


class InvalidArgument(Error, ValueError):
    """A value that can never work."""

    code = 1


class NotFound(Error, LookupError):
    code = 2


class AlreadyExists(Error):
    """A port in use."""

    code = 3


class PermissionDenied(Error):
    code = 4


class ResourceExhausted(Error):
    """At a bound, or out of memory."""

    code = 5


class Unavailable(Error, ConnectionError):
    """The peer cannot be reached, refused, or is lost."""

    code = 6


class TimedOut(Error, TimeoutError):
    code = 7


class Unimplemented(Error):
    code = 8


class InternalError(Error):
    code = 9


class TryAgain(Error):
    """At a bound: let operations complete, and post again."""

    code = 20


class NotConnected(Error, ConnectionError):
    """Not established, closed or lost: nothing was posted."""

    code = 21


class InvalidMemory(Error, ValueError):
    """Not registered, out of bounds, or without the permission."""

    code = 22


class Interrupted(Error):
    """Context.interrupt() has ended the wait; what was waited for goes on."""


class OperationError(Error):
    """An operation that was posted has failed: `status` (a Status) says how, `completion` has the rest, None where the
    context was closed before."""

    def __init__(self, status, completion=None):
        self.status = status
        self.completion = completion
        super().__init__(status.name.lower().replace("_", " "))


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__() if kind.code is not None}


def check(code):
    """Raises what the code means, with the words of the last failed call of this thread."""
    if code == _abi.OK:
        return
    kind = _BY_CODE.get(code, InternalError)
    # A bound that was met is no failure, so the last error would be of another call.
    raise kind("" if code == _abi.TRY_AGAIN else _abi.functions.last_error().decode())
