"""Operations that were posted, and what completes them."""

import dataclasses

from paceline import _abi
from paceline.errors import OperationError


@dataclasses.dataclass(frozen=True)
class Completion:
    """How an operation has ended. `bytes`: transferred; of a receive the length of the message as sent. `result`: of
    atomics, the value before. `immediate`: None where there is none."""

    operation: _abi.Operation
    status: _abi.Status
    connection: int
    bytes: int
    tag: int
    immediate: int
    result: int

    @classmethod
    def of(cls, raw):
        """From what the library has written."""
        return cls(
            operation=_abi.Operation(raw.operation),
            status=_abi.Status(raw.status),
            connection=raw.connection,
            bytes=raw.bytes,
            tag=raw.tag,
            immediate=raw.immediate if raw.has_immediate else None,
            result=raw.result,
        )


class Operation:
    """One send, receive, write, ... that was posted. Until it is done it holds its buffer. It can be awaited, in any
    number of tasks of the loop in which its context is used."""

    def __init__(self, context, pinned):
        self._context = context
        self._pinned = pinned
        self._completion = None
        self._error = None
        self._cancel = None

    @property
    def done(self):
        return self._completion is not None or self._error is not None

    def result(self):
        """The Completion of a done operation; raises OperationError where it failed."""
        if self._error is not None:
            raise self._error
        if self._completion is None:
            raise RuntimeError("the operation is not done")
        return self._completion

    def wait(self, timeout=None):
        """Makes progress until it is done, then as result(). Seconds, None: without end; TimedOut leaves it going
        on."""
        self._context._wait_until(lambda: self.done, timeout)
        return self.result()

    def cancel(self):
        """True: it will be done soon, with Status.CANCELLED. False: too late, it completes as usual."""
        return not self.done and self._cancel is not None and self._cancel()

    def __await__(self):
        yield from self._context._until(lambda: self.done, None).__await__()
        return self.result()

    # ---- for the context

    def _complete(self, raw):
        completion = Completion.of(raw)
        self._end(completion, completion.status)

    def _give_up(self):
        self._end(None, _abi.Status.CONNECTION_CLOSED)

    def _end(self, completion, status):
        if status != _abi.Status.OK:
            self._error = OperationError(status, completion)
        self._completion = completion
        if self._pinned is not None:
            self._pinned.release()
            self._pinned = None
        self._cancel = None
