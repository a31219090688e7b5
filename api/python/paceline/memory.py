"""Memory of Python objects: held in place while the library uses it, and registered for peers."""

import ctypes

from paceline import _abi
from paceline.errors import InvalidArgument, check


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_get_buffer.restype = ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None

_SIMPLE, _WRITABLE = 0, 1


class Pinned:
    """The bytes of an object, which stays alive and of its size until release(). If that is never called the object
    lives on for ever: memory that the library may still write is not given back by accident."""

    def __init__(self, source, writable):
        self._view = _PyBuffer()
        try:
            _get_buffer(source, ctypes.byref(self._view), _WRITABLE if writable else _SIMPLE)
        except (BufferError, TypeError, ValueError) as error:
            need = "writable, contiguous memory" if writable else "contiguous memory"
            raise InvalidArgument(
                f"a buffer must be an object with {need}, not this {type(source).__name__}: {error}"
            ) from None
        self._held = True

    @property
    def address(self):
        return self._view.buf

    @property
    def bytes(self):
        return self._view.len

    def as_buffer(self):
        return _abi.Buffer(self.address, self.bytes, 0)

    def release(self):
        view = ctypes.byref(self._view)
        if self._held:
            self._held = False  # and no call in between, after which a signal handler could raise
            _release_buffer(view)


class Region:
    """Memory of an object that peers may reach, until close(). Made by Context.register()."""

    def __init__(self, context, source, access, only):
        writable = bool(access & (_abi.Access.REMOTE_WRITE | _abi.Access.REMOTE_ATOMIC))
        self._pinned = Pinned(source, writable)
        self._context = context
        number = ctypes.c_uint32()
        try:
            context._call(self._register, access, only, number)
        except BaseException:
            if number.value == 0:  # else it is registered, and this is of a signal handler: peers may reach it
                self._pinned.release()
            raise

    def _register(self, context, access, only, number):
        def register(of):
            return _abi.functions.register_memory(
                context, self._pinned.address, self._pinned.bytes, int(access), of, ctypes.byref(number)
            )

        try:
            check(register(None) if only is None else only._call(register))
        finally:
            self.number = number.value
            if self.number != 0:
                self._context._open.add(self)

    def export(self, connection=None):
        """The bytes that a peer needs to reach it: any peer, or that of a `connection` and no other. Of a context with
        several engines only the latter tell cards of the peer what they need to write by themselves."""
        remote = _abi.RemoteMemory()

        def export(context):
            if connection is None:
                return _abi.functions.export_memory(context, self.number, ctypes.byref(remote))
            return connection._call(export_for, context)

        def export_for(of, context):
            return _abi.functions.export_memory_for(context, of, self.number, ctypes.byref(remote))

        check(self._context._call(export))
        return bytes(remote)

    def close(self):
        """At once: what arrives later for it is refused."""
        if self not in self._context._open:
            return
        try:
            self._context._call(self._deregister)
        except InvalidArgument:
            pass  # the context is being closed, and with it this

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _deregister(self, context):
        release = self._take_away()
        if release is not None:
            _abi.functions.deregister_memory(context, self.number)
            release()
            self._context._on_posted()

    def _take_away(self):
        """What lets go of the memory, None where another does: once it is not registered any more."""
        return self._pinned.release if self._context._take(self) else None


def remote_memory(exported):
    """From the bytes of Region.export()."""
    if len(exported) != ctypes.sizeof(_abi.RemoteMemory):
        raise InvalidArgument(f"remote memory has {ctypes.sizeof(_abi.RemoteMemory)} bytes, not {len(exported)}")
    return _abi.RemoteMemory.from_buffer_copy(exported)
