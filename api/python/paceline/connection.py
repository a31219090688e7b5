"""Connections to peers, and listeners that take them."""

import contextlib
import ctypes

from paceline import _abi
from paceline.errors import InvalidArgument, NotConnected, check
from paceline.memory import Pinned, remote_memory
from paceline.operation import Operation
from paceline.owned import Owned

_library = _abi.functions


class Connection(Owned):
    """To one peer, both directions. Made by Context.connect() and Listener.accept(). close() is in order and in the
    background: what was posted is carried out, receives fail with Status.CONNECTION_CLOSED.

    The calls that post give an Operation at once. They raise TryAgain at a bound (let operations complete, and post
    again), NotConnected when it is not established, InvalidArgument and InvalidMemory for what can never work."""

    _closed = NotConnected, "the connection was closed"

    @property
    def id(self):
        """As in Completion.connection."""
        return self._call(_library.connection_id)

    @property
    def established(self):
        try:
            return self._call(_library.connection_get_state) == _abi.ESTABLISHED
        except NotConnected:
            return False

    @property
    def close_code(self):
        """Why it is over, a CloseCode; NONE while it is not. After close() it raises NotConnected."""
        return _abi.CloseCode(self._call(_library.connection_get_close_code))

    def wait_established(self, timeout=None):
        """Makes progress until it is: raises Unavailable with the reason when the peer cannot be had, TimedOut."""
        self._context._wait_until(self._is_decided, timeout)
        self._check_established()

    async def when_established(self, timeout=None):
        """The same for asyncio."""
        await self._context._until(self._is_decided, timeout)
        self._check_established()

    def send(self, buffer, tag=0):
        """Done: the buffer may be reused; the peer's context holds every byte."""
        return self._post(_library.send, Pinned(buffer, writable=False), (), (tag,))

    def receive(self, buffer, tag=0, ignore=0):
        """Takes the first message, in sending order, whose tag equals `tag` in all bits not set in `ignore`. Done:
        every byte is in place. A longer message than the buffer fails with Status.TRUNCATED and its first bytes."""
        return self._post(_library.receive, Pinned(buffer, writable=True), (), (tag, ignore))

    def write(self, buffer, remote, offset=0, immediate=None):
        """To the peer's memory, `remote` being the bytes of its Region.export(). Done: every byte is in place there.
        With an `immediate` (64 bits) the peer gets it when they are: Context.take_immediates()."""
        rest = (offset,) if immediate is None else (offset, immediate)
        function = _library.write if immediate is None else _library.write_immediate
        return self._post(function, Pinned(buffer, writable=False), (remote,), rest)

    def read(self, buffer, remote, offset=0):
        """From the peer's memory. Done: the bytes are here."""
        return self._post(_library.read, Pinned(buffer, writable=True), (remote,), (offset,))

    def fetch_add(self, remote, offset, add):
        """Adds to 8 aligned bytes of the peer's; Completion.result has the value before."""
        return self._post(_library.fetch_add, None, (remote,), (offset, add))

    def compare_swap(self, remote, offset, compare, swap):
        """Puts `swap` into 8 aligned bytes of the peer's if they hold `compare`; Completion.result has the value
        before."""
        return self._post(_library.compare_swap, None, (remote,), (offset, compare, swap))

    def flush(self):
        """Done when everything posted before on this connection is done."""
        return self._post(_library.flush, None, (), ())

    def abort(self):
        """Ends it at once: every operation left fails with Status.CONNECTION_CLOSED."""
        self._call(_library.connection_abort)
        self._context._on_posted()

    def _destroy(self, pointer):
        _library.connection_destroy(pointer)

    def _is_decided(self):
        return self._call(_library.connection_get_state) != _abi.CONNECTING

    def _check_established(self):
        check(self._call(_library.connection_wait, 0))

    def _post(self, function, pinned, remotes, numbers):
        operation = Operation(self._context, pinned)
        number = self._context._register(operation)
        identity = ctypes.c_uint64()
        arguments = [] if pinned is None else [pinned.as_buffer()]
        try:
            arguments += [ctypes.byref(remote_memory(remote)) for remote in remotes]
            for value in numbers:
                if not 0 <= value < 1 << 64:
                    raise InvalidArgument(f"{value} does not fit into 64 bits")
            check(self._call(function, *arguments, *numbers, number, ctypes.byref(identity)))
        except BaseException:
            if identity.value == 0:  # else it was posted, and this is of a signal handler: the buffer is in use
                self._context._forget(number)
                if pinned is not None:
                    pinned.release()
            raise
        self._context._on_posted()
        operation._cancel = lambda: self._cancel(identity.value)
        return operation

    def _cancel(self, identity):
        try:
            cancelled = self._call(_library.cancel, identity) == _abi.OK
        except NotConnected:
            return False
        self._context._on_posted()
        return cancelled


class Listener(Owned):
    """Takes connections. Made by Context.listen(). Connections that it has made live on after close()."""

    _closed = InvalidArgument, "the listener was closed"

    @property
    def handle(self):
        """Where it can be reached: 128 opaque bytes for peers."""
        handle = _abi.Handle()
        check(self._call(_library.listener_handle, ctypes.byref(handle)))
        return bytes(handle)

    def try_accept(self):
        """The next connection, perhaps not established yet; None: there is none."""
        return self._call(self._context._make, Connection, _library.accept)

    def accept(self, timeout=None):
        """The next connection, established. Seconds; TimedOut."""
        with _closed_on_error() as taken:
            self._context._wait_until(lambda: self._take(taken), timeout)
            taken[0].wait_established(timeout)
            return taken[0]

    async def when_accepted(self, timeout=None):
        """The same for asyncio."""
        with _closed_on_error() as taken:
            await self._context._until(lambda: self._take(taken), timeout)
            await taken[0].when_established(timeout)
            return taken[0]

    def _destroy(self, pointer):
        _library.listener_destroy(pointer)

    def _take(self, taken):
        connection = self.try_accept()
        if connection is not None:
            taken.append(connection)
        return bool(taken)


@contextlib.contextmanager
def _closed_on_error():
    """A list of connections, which nobody gets when an exception, a cancellation too, ends the block: then they are
    closed."""
    taken = []
    try:
        yield taken
    except BaseException:
        for connection in taken:
            connection.close()
        raise
