"""The publish that a client repeats: most send the same method, the same properties and bodies of one size each time.

Such a publish is recognised by comparing its bytes up to the body with those of the one before. That takes a tenth of
the instructions of reading its three frames, and of finding the target and the header that they stand for.
"""

from gateway.kernel.messages.message import Header
from gateway_amqp.publishing import Target


class Repetition:
    """A publish that came twice in a row: its bytes up to the body, the size of the body, and the decoded values."""

    __slots__ = ("beginning", "body_size", "header", "target")

    def __init__(self, beginning: bytes, body_size: int, target: Target, header: Header) -> None:
        self.beginning = beginning
        self.body_size = body_size
        self.target = target
        self.header = header


class LastPublish:
    """The last publish of a channel, and the one that it repeats.

    ``is_repeated``: the last two publishes differed at most in the content of their bodies. Then ``learn`` sets
    ``repetition``. Each publish sets it anew, because one that came in pieces is not learned. ``position`` is that of
    the frame after the last repetition.
    """

    __slots__ = ("_header", "_size", "_target", "is_repeated", "position", "repetition")

    def __init__(self) -> None:
        self.is_repeated = False
        self.repetition: Repetition | None = None
        self.position = 0
        self._target: Target | None = None
        self._header: Header | None = None
        self._size = 0

    def compare(self, target: Target, header: Header, size: int) -> None:
        """Compare the next publish with the last one; ``size`` is that of the body."""
        if target is self._target and header is self._header and size == self._size:
            self.is_repeated = True
        else:
            self.is_repeated = False
            self._target, self._header, self._size = target, header, size

    def learn(self, beginning: bytes) -> None:
        """Recognise this publish from now on; ``beginning`` are its bytes up to the body."""
        assert self._target is not None
        assert self._header is not None
        self.is_repeated = False
        self.repetition = Repetition(beginning, self._size, self._target, self._header)

    def forget(self) -> None:
        """Recognise no publish any more."""
        self._target = self._header = self.repetition = None
