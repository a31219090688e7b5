"""Paceline for Python: contexts, connections, operations and completions of the C interface (paceline/paceline.h), with
errors as exceptions, buffers of any kind (numpy arrays, bytearrays, memoryviews) and operations that can be awaited.

    with paceline.Context() as context, context.listen() as listener:
        send(listener.handle)                      # 128 bytes, to the peer by any means
        with listener.accept(timeout=10) as connection:
            connection.receive(array).wait()

Rules, on top of those of the C interface:
  - One thread at a time per context, unless it was made with progress="thread".
  - A buffer in use is held, and cannot change its size, until its operation is complete or the context is closed.
  - Nothing moves data but progress(), wait() and awaiting, unless progress="thread".
"""

from paceline._abi import Access, CloseCode, Operation as OperationKind, Status, version
from paceline.connection import Connection, Listener
from paceline.context import Context
from paceline.errors import (
    AlreadyExists,
    Error,
    InternalError,
    Interrupted,
    InvalidArgument,
    InvalidMemory,
    NotConnected,
    NotFound,
    OperationError,
    PermissionDenied,
    ResourceExhausted,
    TimedOut,
    TryAgain,
    Unavailable,
    Unimplemented,
)
from paceline.memory import Region
from paceline.operation import Completion, Operation

__version__ = version()

__all__ = [
    "Access",
    "AlreadyExists",
    "CloseCode",
    "Completion",
    "Connection",
    "Context",
    "Error",
    "InternalError",
    "Interrupted",
    "InvalidArgument",
    "InvalidMemory",
    "Listener",
    "NotConnected",
    "NotFound",
    "Operation",
    "OperationError",
    "OperationKind",
    "PermissionDenied",
    "Region",
    "ResourceExhausted",
    "Status",
    "TimedOut",
    "TryAgain",
    "Unavailable",
    "Unimplemented",
]
