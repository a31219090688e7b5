"""The C interface as ctypes sees it: structs, constants and functions of paceline/paceline.h. Nothing here has a
policy."""

import ctypes
import enum
import os
import pathlib
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p


class Access(enum.IntFlag):
    """What peers may do with a region."""

    NONE = 0
    REMOTE_READ = 1
    REMOTE_WRITE = 2
    REMOTE_ATOMIC = 4


class _Open(enum.IntEnum):
    """Values that a later library of the same ABI may add to are members, too, named UNKNOWN_ and the number."""

    @classmethod
    def _missing_(cls, value):
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}"
        member._value_ = value
        return member


class Operation(_Open):
    """Kinds of operations, in completions."""

    SEND = 0
    RECEIVE = 1
    WRITE = 2
    WRITE_IMMEDIATE = 3
    READ = 4
    FETCH_ADD = 5
    COMPARE_SWAP = 6
    FLUSH = 7


class Status(_Open):
    """How an operation ended."""

    OK = 0
    CANCELLED = 1
    TRUNCATED = 2
    REMOTE_ACCESS = 3
    CONNECTION_CLOSED = 4
    PEER_LOST = 5
    REMOTE_ERROR = 6


class CloseCode(_Open):
    """Why a connection is over."""

    NONE = 0  # it is not
    BY_PEER = 1
    LOCAL = 2
    ABORTED = 3  # by the peer
    PEER_LOST = 4
    REFUSED_NO_LISTENER = 5
    REFUSED_VERSION = 6
    REFUSED_MISMATCH = 7  # another congestion-control algorithm
    REFUSED_FULL = 8
    REFUSED_BY_APPLICATION = 9
    UNREACHABLE = 10
    PROTOCOL_ERROR = 11
    REFUSED_KEY = 12
    REFUSED_NO_ROUTE = 13


OK, TIMED_OUT, TRY_AGAIN = 0, 7, 20
PROGRESS = {"manual": 0, "thread": 1}
USE_ENVIRONMENT = 1
CONNECTING, ESTABLISHED, CLOSED = 0, 1, 2
HANDLE_BYTES = 128


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("flags", c_uint64),
        ("lane", c_char_p),
        ("bind", c_char_p),
        ("congestion_control", c_char_p),
        ("congestion_control_parameters", c_char_p),
        ("progress", c_uint32),
        ("local_ranks", c_uint32),
        ("max_connections", c_uint32),
        ("max_operations", c_uint32),
        ("connect_timeout_ms", c_uint32),
        ("peer_timeout_ms", c_uint32),
        ("linger_ms", c_uint32),
        ("encrypt", c_uint32),
        ("key_file", c_char_p),
        ("engines", c_uint32),
        ("reserved", c_uint32),
    ]


class RemoteMemory(ctypes.Structure):
    _fields_ = [("key", c_uint64), ("bytes", c_uint64), ("lane_base", c_uint64), ("lane_keys", c_uint64 * 8)]


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint8 * HANDLE_BYTES)]


class Buffer(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_uint64), ("region", c_uint32)]


class Completion(ctypes.Structure):
    _fields_ = [
        ("operation", c_uint32),
        ("status", c_uint32),
        ("connection", c_uint32),
        ("has_immediate", c_uint32),
        ("user_data", c_uint64),
        ("bytes", c_uint64),
        ("tag", c_uint64),
        ("immediate", c_uint64),
        ("result", c_uint64),
    ]


class Counter(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 64), ("unit", ctypes.c_char * 16), ("value", c_uint64)]


_REMOTE = POINTER(RemoteMemory)
_ID = POINTER(c_uint64)

# Name: what it returns, what it takes.
FUNCTIONS = {
    "version": (c_char_p, []),
    "result_name": (c_char_p, [c_int]),
    "last_error": (c_char_p, []),
    "context_create": (c_int, [POINTER(Options), POINTER(c_void_p)]),
    "context_destroy": (None, [c_void_p]),
    "progress": (c_int, [c_void_p]),
    "wait": (c_int, [c_void_p, c_int64]),
    "interrupt": (None, [c_void_p]),
    "descriptor": (c_int, [c_void_p]),
    "arm": (c_int, [c_void_p]),
    "register_memory": (c_int, [c_void_p, c_void_p, c_uint64, c_uint32, c_void_p, POINTER(c_uint32)]),
    "deregister_memory": (c_int, [c_void_p, c_uint32]),
    "export_memory": (c_int, [c_void_p, c_uint32, _REMOTE]),
    "export_memory_for": (c_int, [c_void_p, c_void_p, c_uint32, _REMOTE]),
    "listen": (c_int, [c_void_p, POINTER(c_void_p)]),
    "listener_handle": (c_int, [c_void_p, POINTER(Handle)]),
    "listener_destroy": (None, [c_void_p]),
    "accept": (c_int, [c_void_p, POINTER(c_void_p)]),
    "connect": (c_int, [c_void_p, POINTER(Handle), POINTER(c_void_p)]),
    "connection_get_close_code": (c_int, [c_void_p]),
    "connection_get_state": (c_int, [c_void_p]),
    "connection_wait": (c_int, [c_void_p, c_int64]),
    "connection_id": (c_uint32, [c_void_p]),
    "connection_close": (None, [c_void_p]),
    "connection_abort": (None, [c_void_p]),
    "connection_destroy": (None, [c_void_p]),
    "send": (c_int, [c_void_p, Buffer, c_uint64, c_uint64, _ID]),
    "receive": (c_int, [c_void_p, Buffer, c_uint64, c_uint64, c_uint64, _ID]),
    "write": (c_int, [c_void_p, Buffer, _REMOTE, c_uint64, c_uint64, _ID]),
    "write_immediate": (c_int, [c_void_p, Buffer, _REMOTE, c_uint64, c_uint64, c_uint64, _ID]),
    "read": (c_int, [c_void_p, Buffer, _REMOTE, c_uint64, c_uint64, _ID]),
    "fetch_add": (c_int, [c_void_p, _REMOTE, c_uint64, c_uint64, c_uint64, _ID]),
    "compare_swap": (c_int, [c_void_p, _REMOTE, c_uint64, c_uint64, c_uint64, c_uint64, _ID]),
    "flush": (c_int, [c_void_p, c_uint64, _ID]),
    "cancel": (c_int, [c_void_p, c_uint64]),
    "poll_sized": (c_size_t, [c_void_p, POINTER(Completion), c_size_t, c_size_t]),
    "counters_sized": (c_size_t, [c_void_p, POINTER(Counter), c_size_t, c_size_t]),
}


def _load():
    """The library that PACELINE_LIBRARY names; else the one that this package was installed with, in a folder above;
    else the one that the dynamic linker finds."""
    name = "libpaceline.so.1"
    named = os.environ.get("PACELINE_LIBRARY")
    if named:
        try:
            return ctypes.CDLL(named)
        except OSError as error:
            raise ImportError(f"paceline: PACELINE_LIBRARY={named}: {error}") from None
    for folder in pathlib.Path(__file__).resolve().parents[1:5]:
        if (folder / name).is_file():
            return ctypes.CDLL(str(folder / name))
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"paceline: {error}; set PACELINE_LIBRARY to the path of {name}") from None


class _Library:
    """Every function of the interface, without its prefix."""

    def __init__(self):
        loaded = _load()
        for name, (returns, takes) in FUNCTIONS.items():
            function = getattr(loaded, "paceline_" + name)
            function.restype, function.argtypes = returns, takes
            setattr(self, name, function)


functions = _Library()


def version():
    return functions.version().decode()
