"""What a context has made, and ends before it does; and the calls that are in either, under which nothing is
destroyed."""

import threading
import time

_POLL_S = 0.001  # of who destroys, until the calls of other threads are over


class Calls:
    """The calls of a context, and of what it has made, that are under way. A context has one; every call of the C
    interface with a pointer goes through it."""

    def __init__(self):
        self._under_way = {}  # by call: its thread, and whose pointer it has
        self._deferred = []  # (thread, what destroys)

    def run(self, owner, function, *arguments):
        """function(pointer of the owner, *arguments). Raises where it has none any more. Without an owner:
        function(*arguments), while which the context is not destroyed."""
        me, call = threading.get_ident(), object()
        try:
            self._under_way[call] = me, owner  # before the pointer is read: end() comes after it was taken away
            if owner is not None:
                return function(owner._as_parameter(), *arguments)
            return function(*arguments)
        finally:
            try:
                if self._deferred:
                    self._end_deferred(me, call)
            finally:
                self._under_way.pop(call, None)  # an exception out of a signal handler comes after a call, not before

    def others(self, owner=None):
        """Whether other threads are in calls: of the owner, or any."""
        me = threading.get_ident()
        return any(thread != me for thread in self._threads(owner))

    def end(self, destroy, owner=None, wake=None):
        """destroy(), once no thread is in a call of the owner, or any, whose pointer was taken away before. In the
        midst of such a call of this thread, as in a signal handler, when that call is over."""
        while self.others(owner):
            if wake is not None:
                wake()
            time.sleep(_POLL_S)
        me = threading.get_ident()
        if me in self._threads(owner):
            self._deferred.append((me, destroy))
        else:
            destroy()

    def _threads(self, owner):
        return [thread for thread, of in self._under_way.copy().values() if owner is None or of is owner]

    def _end_deferred(self, me, call):
        if any(thread == me for other, (thread, _) in self._under_way.copy().items() if other is not call):
            return
        for one in [one for one in self._deferred if one[0] == me]:
            self._deferred.remove(one)
            one[1]()


class Owned:
    """Has a pointer of the C interface until close(), which its class says the meaning of."""

    _closed = None  # kind and text of what its calls raise from then on

    def __init__(self, context, pointer):
        """In a call of the context, so that close() of it knows what there is."""
        self._context = context
        self._pointer = pointer
        context._open.add(self)
        if context._pointer is None:  # perhaps too late to be closed by it
            self._end()
            context._as_parameter()

    def close(self):
        """Once; again it does nothing. Waits for calls that other threads are in."""
        if self._pointer is not None:
            self._context._calls.run(None, self._end)
            self._context._on_posted()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, function, *arguments):
        """function(pointer, *arguments), under which it is not destroyed."""
        return self._context._calls.run(self, function, *arguments)

    def _end(self):
        destroy = self._take_away()
        if destroy is not None:
            self._context._calls.end(destroy, self)

    def _take_away(self):
        """Takes the pointer away; what destroys it, None where another has taken it."""
        if not self._context._take(self):
            return None
        pointer, self._pointer = self._pointer, None
        return lambda: self._destroy(pointer)

    def _destroy(self, pointer):
        raise NotImplementedError

    def _as_parameter(self):
        pointer = self._pointer
        if pointer is None:
            kind, text = self._closed
            raise kind(text)
        return pointer
