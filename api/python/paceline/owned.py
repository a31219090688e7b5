"""What a context has made, and ends before it does."""


class Owned:
    """Has a pointer of the C interface until close(), which its class says the meaning of."""

    _closed = None  # kind and text of what its calls raise from then on

    def __init__(self, context, pointer):
        self._context = context
        self._pointer = pointer
        context._open.add(self)

    def close(self):
        """Once; again it does nothing."""
        if self._pointer is None:
            return
        self._context._open.discard(self)
        pointer, self._pointer = self._pointer, None
        self._destroy(pointer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _destroy(self, pointer):
        raise NotImplementedError

    def _as_parameter(self):
        if self._pointer is None:
            kind, text = self._closed
            raise kind(text)
        return self._pointer
