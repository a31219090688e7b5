"""A context: ports, progress, completions and counters, and what waits for them."""

import asyncio
import collections
import ctypes
import itertools
import threading
import time
import warnings

from paceline import _abi
from paceline.connection import Connection, Listener
from paceline.errors import Interrupted, InvalidArgument, TimedOut, check
from paceline.memory import Region
from paceline.operation import Completion
from paceline.owned import Calls

_library = _abi.functions
_BATCH = 32
_SLICE_S = 0.1  # of a wait: signals are delivered in between, and another thread may have taken what this one waits for
_TEXTS = ("lane", "bind", "congestion_control", "congestion_control_parameters", "key_file")
_NUMBERS = (
    "engines",
    "local_ranks",
    "max_connections",
    "max_operations",
    "connect_timeout_ms",
    "peer_timeout_ms",
    "linger_ms",
)


class Context:
    """`progress`: "manual", data moves in calls that wait, progress() and awaiting, on one thread at a time;
    "thread", a thread of the context moves data and every call may come from any thread. `environment`: PACELINE_*
    variables are put over the options. Options, all as in docs/tuning.md: lane, bind, congestion_control,
    congestion_control_parameters, key_file (texts), engines, local_ranks, max_connections, max_operations,
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
        self._calls = Calls()
        self._open = set()  # connections, listeners and regions; they end before the context
        self._closer = [None]  # taken by the thread that closes
        self._operations = {}  # posted and not complete, by the number that their completion will have
        self._numbers = itertools.count(1)
        self._immediates = collections.deque()
        self._left = []  # batches of completions, which an exception has kept progress() from handling to the end
        self._left_lock = threading.RLock()
        self._interrupt = self._interrupted = None  # the last interrupt(), and the last that a wait has raised for
        self._loop = None
        self._loop_thread = None  # that it runs on
        self._coming = False  # the loop will call _advance() soon
        self._descriptor = None  # that the loop watches
        self._waiting = []  # of asyncio: (condition, future)
        pointer = ctypes.c_void_p()
        check(_library.context_create(ctypes.byref(raw), ctypes.byref(pointer)))
        self._pointer = pointer.value

    # ---- peers and memory

    def listen(self):
        return self._call(self._make, Listener, _library.listen)

    def connect(self, handle):
        """Starts to connect to a listener's handle; then Connection.wait_established() or when_established()."""
        if len(handle) != _abi.HANDLE_BYTES:
            raise InvalidArgument(f"a handle has {_abi.HANDLE_BYTES} bytes, not {len(handle)}")
        raw = _abi.Handle.from_buffer_copy(handle)
        return self._call(self._make, Connection, _library.connect, ctypes.byref(raw))

    def register(self, buffer, access, only=None):
        """Opens the memory of an object to peers: `access` is of Access bits, `only` a connection whose peer alone
        may."""
        return Region(self, buffer, access, only)

    # ---- progress and completions

    def progress(self):
        """Takes completions and, with manual progress, moves data. True: there was something."""
        found = True  # perhaps, where a signal handler's exception comes in between
        try:
            found = self._progress()
        finally:
            # What the loop's tasks wait for may have come here, and its descriptor tells them of nothing then.
            if self._waiting and (found or not self._threaded):
                self._wake_loop()
        return found

    def take_immediates(self):
        """The completions of peers' writes with an immediate that have come since the last call, in order."""
        taken = []
        while self._take_immediate(taken):
            pass
        return taken

    def wait_immediate(self, timeout=None):
        """Makes progress until a peer's write with an immediate is there, and takes it."""
        taken = []
        self._wait_until(lambda: self._take_immediate(taken), timeout)
        return taken[0]

    async def when_immediate(self, timeout=None):
        """The same for asyncio."""
        deadline = None if timeout is None else time.monotonic() + timeout
        taken = []
        while not self._take_immediate(taken):  # here, where no cancellation comes in between
            left = None if deadline is None else max(0, deadline - time.monotonic())
            await self._until(lambda: bool(self._immediates), left)
        return taken[0]

    def interrupt(self):
        """The blocking waits that are going on raise Interrupted; if none does, the next one that would wait. Not what
        is awaited with asyncio: cancel its task. From any thread."""
        self._interrupt = object()
        self._call(_library.interrupt)

    def counters(self):
        """All counters (docs/counters.md) by name."""
        room = self._call(_library.counters_sized, None, ctypes.sizeof(_abi.Counter), 0)
        array = (_abi.Counter * room)()
        count = self._call(_library.counters_sized, array, ctypes.sizeof(_abi.Counter), room)
        return {one.name.decode(): one.value for one in array[: min(count, room)]}

    # ---- its end

    def close(self):
        """Closes what is still open, waits for orderly closes (at most linger_ms), and lets go of every buffer:
        operations that are not done fail with Status.CONNECTION_CLOSED. From any thread: calls that other threads are
        in end first, their waits with InvalidArgument. In a signal handler in the midst of a call of this thread, the
        close comes when that call is over."""
        try:
            self._closer.pop()
        except IndexError:
            return
        pointer, self._pointer = self._pointer, None
        ends = [one._take_away() for one in self._open.copy() if not isinstance(one, Region)]
        self._calls.end(lambda: self._end(pointer, ends), wake=lambda: _library.interrupt(pointer))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None) is not None:
            warnings.warn("a paceline.Context was not closed", ResourceWarning, source=self)

    # ---- for the classes of this package

    def _as_parameter(self):
        pointer = self._pointer
        if pointer is None:
            raise InvalidArgument("the context was closed")
        return pointer

    def _call(self, function, *arguments):
        """function(pointer, *arguments), under which it is not destroyed."""
        return self._calls.run(self, function, *arguments)

    def _make(self, pointer, kind, function, *arguments):
        """What function(pointer, *arguments) makes, in a call; None: there is none yet."""
        made = ctypes.c_void_p()
        try:
            code = function(pointer, *arguments, ctypes.byref(made))
            if code == _abi.TRY_AGAIN:
                return None
            check(code)
        except BaseException:
            if made.value is not None:  # of a signal handler: it ends with the context
                kind(self, made.value)
            raise
        one = kind(self, made.value)
        self._on_posted()
        return one

    def _take(self, one):
        """Takes it out of those that are open; True for one thread only, which ends it."""
        try:
            self._open.remove(one)
        except KeyError:
            return False
        return True

    def _end(self, pointer, ends):
        loop = self._loop
        self._leave_loop()
        for end in ends:
            if end is not None:
                end()
        try:
            _library.context_destroy(pointer)
        finally:  # whatever a signal handler raises
            for region in self._open.copy():  # peers could reach them until now
                release = region._take_away()
                if release is not None:
                    release()
            operations, self._operations = self._operations, {}
            for operation in operations.values():
                operation._give_up()
            if loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._advance)

    def _register(self, operation):
        # Before the post: with a progress thread another thread may take the completion before the post returns.
        number = next(self._numbers)
        self._operations[number] = operation
        return number

    def _forget(self, number):
        self._operations.pop(number, None)

    def _progress(self):
        left = bool(self._left) and self._handle_left()
        batch = (_abi.Completion * _BATCH)()  # zeros: nothing for _handle
        try:
            count = self._call(_library.poll_sized, batch, ctypes.sizeof(_abi.Completion), _BATCH)
            for raw in batch[:count]:
                self._handle(raw)
        except BaseException:  # of a signal handler: the next call goes on
            if batch[0].connection:  # of a completion never 0, whatever was done with it
                self._left.append(batch)
            raise
        return left or count > 0

    def _handle(self, raw):
        """A completion. Once more where an exception came in between, which it does after calls only: then it does
        what is left to do."""
        operation = self._operations.get(raw.user_data)
        if operation is not None:
            operation._complete(raw)
            self._operations.pop(raw.user_data, None)
        elif raw.has_immediate and raw.user_data == 0:  # a peer's write
            self._immediates += (Completion.of(raw),)
            raw.has_immediate = 0

    def _handle_left(self):
        """True."""
        with self._left_lock:
            for batch in [*self._left]:
                for raw in batch:
                    self._handle(raw)
                if batch in self._left:
                    self._left.remove(batch)
        return True

    def _take_immediate(self, taken):
        try:
            taken.append(self._immediates.popleft())
        except IndexError:  # others take them, too
            return False
        return True

    def _wait_until(self, condition, timeout):
        deadline = None if timeout is None else time.monotonic() + timeout
        interrupted = self._interrupted
        while not condition():
            if self._interrupt is not interrupted:
                self._interrupted = self._interrupt
                if self._calls.others():  # the library wakes one at a time
                    self._call(_library.interrupt)
                raise Interrupted("the wait was ended by interrupt()")
            if self.progress():
                continue
            left = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
            if left <= 0:
                raise TimedOut(f"nothing came within {timeout} s")
            self._call(self._wait, interrupted, int(left * 1e9))

    def _wait(self, pointer, interrupted, nanos):
        if self._interrupt is not interrupted:  # looked at in the call, so that who wakes others knows of this one
            return
        code = _library.wait(pointer, nanos)
        if code != _abi.TIMED_OUT:
            check(code)

    def _on_posted(self):
        """There is something to send, which a thread does by itself."""
        if not self._threaded:
            self._wake_loop()

    def _wake_loop(self):
        """The loop calls _advance() soon. From any thread."""
        loop = self._loop
        if loop is None or self._coming:
            return
        self._coming = True  # before it can be done
        call_soon = loop.call_soon if threading.get_ident() == self._loop_thread else loop.call_soon_threadsafe
        try:
            call_soon(self._advance)
        except RuntimeError:  # it is closed
            self._coming = False

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
        self._descriptor = self._call(_library.descriptor)
        self._loop_thread = threading.get_ident()
        self._coming = False
        self._loop = loop
        loop.add_reader(self._descriptor, self._advance)

    def _leave_loop(self):
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        self._loop = None

    def _advance(self):
        """Takes what is there, wakes who waited for it, and arms the descriptor; with more to do it comes back at
        once. Of a closed context it wakes all."""
        self._coming = False
        if self._loop is None and self._pointer is not None:
            return
        try:
            self._progress()
            for condition, future in [*self._waiting]:
                _settle(condition, future)
            if not self._call(_library.arm):
                self._wake_loop()
        except InvalidArgument as closed:
            for condition, future in self._waiting:
                if not _settle(condition, future):
                    future.set_exception(closed)
            self._waiting.clear()


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
