"""A context: ports, progress, completions and counters, and what waits for them."""

import asyncio
import collections
import ctypes
import itertools
import time
import warnings

from paceline import _abi
from paceline.connection import Connection, Listener
from paceline.errors import InvalidArgument, TimedOut, check
from paceline.memory import Region
from paceline.operation import Completion

_library = _abi.functions
_BATCH = 32
_SLICE_S = 0.1  # of a wait: signals are delivered in between, and another thread may have taken what this one waits for
_TEXTS = ("lane", "bind", "congestion_control", "congestion_control_parameters", "key_file")
_NUMBERS = ("local_ranks", "max_connections", "max_operations", "connect_timeout_ms", "peer_timeout_ms", "linger_ms")


class Context:
    """`progress`: "manual", data moves in calls that wait, progress() and awaiting, on one thread at a time;
    "thread", a thread of the context moves data and every call may come from any thread. `environment`: PACELINE_*
    variables are put over the options. Options, all as in docs/tuning.md: lane, bind, congestion_control,
    congestion_control_parameters, key_file (texts), local_ranks, max_connections, max_operations,
    connect_timeout_ms, peer_timeout_ms, linger_ms (numbers), encrypt (True or False)."""

    def __init__(self, progress="manual", environment=True, encrypt=False, **options):
        self._pointer = None
        if progress not in _abi.PROGRESS:
            raise InvalidArgument(f'progress is "manual" or "thread", not {progress!r}')
        raw = _abi.Options(
            struct_size=ctypes.sizeof(_abi.Options),
            progress=_abi.PROGRESS[progress],
            encrypt=int(encrypt),
            flags=_abi.USE_ENVIRONMENT if environment else 0,
        )
        for name, value in options.items():
            if name in _TEXTS:
                setattr(raw, name, value if value is None else str(value).encode())
            elif name in _NUMBERS:
                if not isinstance(value, int) or not 0 <= value < 1 << 32:
                    raise InvalidArgument(f"{name} is a number from 0 to 4294967295, not {value!r}")
                setattr(raw, name, value)
            else:
                raise TypeError(f"Context has no option {name!r}; it has {', '.join(_TEXTS + _NUMBERS)}")
        self._threaded = progress == "thread"
        self._open = set()  # connections, listeners and regions; they end before the context
        self._operations = {}  # posted and not complete, by the number that their completion will have
        self._numbers = itertools.count(1)
        self._immediates = collections.deque()
        self._loop = None
        self._waiting = []  # of asyncio: (condition, future)
        pointer = ctypes.c_void_p()
        check(_library.context_create(ctypes.byref(raw), ctypes.byref(pointer)))
        self._pointer = pointer.value

    # ---- peers and memory

    def listen(self):
        pointer = ctypes.c_void_p()
        check(_library.listen(self._as_parameter(), ctypes.byref(pointer)))
        return Listener(self, pointer.value)

    def connect(self, handle):
        """Starts to connect to a listener's handle; then Connection.wait_established() or when_established()."""
        if len(handle) != _abi.HANDLE_BYTES:
            raise InvalidArgument(f"a handle has {_abi.HANDLE_BYTES} bytes, not {len(handle)}")
        pointer = ctypes.c_void_p()
        raw = _abi.Handle.from_buffer_copy(handle)
        check(_library.connect(self._as_parameter(), ctypes.byref(raw), ctypes.byref(pointer)))
        return Connection(self, pointer.value)

    def register(self, buffer, access, only=None):
        """Opens the memory of an object to peers: `access` is of Access bits, `only` a connection whose peer alone
        may."""
        return Region(self, buffer, access, only)

    # ---- progress and completions

    def progress(self):
        """Takes completions and, with manual progress, moves data. True: there was something."""
        batch = (_abi.Completion * _BATCH)()
        count = _library.poll_sized(self._as_parameter(), batch, ctypes.sizeof(_abi.Completion), _BATCH)
        for raw in batch[:count]:
            operation = self._operations.pop(raw.user_data, None)
            if operation is not None:
                operation._complete(raw)
            elif raw.has_immediate:  # a peer's write
                self._immediates.append(Completion.of(raw))
        return count > 0

    def take_immediates(self):
        """The completions of peers' writes with an immediate that have come since the last call, in order."""
        taken = []
        while self._immediates:
            taken.append(self._immediates.popleft())
        return taken

    def wait_immediate(self, timeout=None):
        """Makes progress until a peer's write with an immediate is there, and takes it."""
        self._wait_until(lambda: bool(self._immediates), timeout)
        return self._immediates.popleft()

    async def when_immediate(self, timeout=None):
        """The same for asyncio."""
        await self._until(lambda: bool(self._immediates), timeout)
        return self._immediates.popleft()

    def interrupt(self):
        """Wakes a thread that waits. From any thread."""
        _library.interrupt(self._as_parameter())

    def counters(self):
        """All counters (docs/counters.md) by name."""
        room = _library.counters_sized(self._as_parameter(), None, ctypes.sizeof(_abi.Counter), 0)
        array = (_abi.Counter * room)()
        count = _library.counters_sized(self._as_parameter(), array, ctypes.sizeof(_abi.Counter), room)
        return {one.name.decode(): one.value for one in array[: min(count, room)]}

    # ---- its end

    def close(self):
        """Closes what is still open, waits for orderly closes (at most linger_ms), and lets go of every buffer:
        operations that are not done fail with Status.CONNECTION_CLOSED."""
        if self._pointer is None:
            return
        self._leave_loop()
        for one in [*self._open]:
            if not isinstance(one, Region):  # peers may reach regions until their connections are closed
                one.close()
        for one in [*self._open]:
            one.close()
        pointer, self._pointer = self._pointer, None
        _library.context_destroy(pointer)
        operations, self._operations = self._operations, {}
        for operation in operations.values():
            operation._give_up()
        for condition, future in self._waiting:
            if not _settle(condition, future):
                future.set_exception(InvalidArgument("the context was closed"))
        self._waiting.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None) is not None:
            warnings.warn("a paceline.Context was not closed", ResourceWarning, source=self)

    # ---- for the classes of this package

    def _as_parameter(self):
        if self._pointer is None:
            raise InvalidArgument("the context was closed")
        return self._pointer

    def _register(self, operation):
        # Before the post: with a progress thread another thread may take the completion before the post returns.
        number = next(self._numbers)
        self._operations[number] = operation
        return number

    def _forget(self, number):
        self._operations.pop(number, None)

    def _wait_until(self, condition, timeout):
        deadline = None if timeout is None else time.monotonic() + timeout
        while not condition():
            if self.progress():
                continue
            left = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
            if left <= 0:
                raise TimedOut(f"nothing came within {timeout} s")
            _library.wait(self._as_parameter(), int(left * 1e9))

    def _on_posted(self):
        if self._loop is not None and not self._threaded and not self._loop.is_closed():
            self._loop.call_soon(self._advance)

    # ---- asyncio: the loop watches the context's descriptor from the first await on, until close()

    async def _until(self, condition, timeout):
        loop = asyncio.get_running_loop()
        self._join_loop(loop)
        if condition():
            return
        future = loop.create_future()
        entry = (condition, future)
        self._waiting.append(entry)
        loop.call_soon(self._advance)
        try:
            await asyncio.wait_for(future, timeout)
        except asyncio.TimeoutError:
            raise TimedOut(f"nothing came within {timeout} s") from None
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    def _join_loop(self, loop):
        if self._loop is loop:
            return
        self._leave_loop()
        self._loop = loop
        loop.add_reader(_library.descriptor(self._as_parameter()), self._advance)

    def _leave_loop(self):
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(_library.descriptor(self._as_parameter()))
        self._loop = None

    def _advance(self):
        """Takes what is there, wakes who waited for it, and arms the descriptor; with more to do it comes back at
        once."""
        if self._pointer is None or self._loop is None:
            return
        self.progress()
        for condition, future in [*self._waiting]:
            _settle(condition, future)
        if self._pointer is not None and not _library.arm(self._pointer):
            self._loop.call_soon(self._advance)


def _settle(condition, future):
    """Wakes who waits if what it waits for is there, or never will be; whether it is awake."""
    if future.done():
        return True
    try:
        if not condition():
            return False
        future.set_result(None)
    except Exception as error:  # such as that the listener was closed meanwhile
        future.set_exception(error)
    return True
