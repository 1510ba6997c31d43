"""Messages that an exchange type keeps, to hand them to destinations that are bound later."""

from collections.abc import Callable, Iterator

from gateway.kernel.messages.message import Message

#: The overhead of a message in bytes, so that a limit in bytes also bounds empty messages.
_OVERHEAD = 400


class Room:
    """The limits of the kept messages of a virtual host, and the messages and bytes in use."""

    __slots__ = ("bytes", "count", "max_bytes", "max_messages")

    def __init__(self, max_messages: int = 100_000, max_bytes: int = 64 * 2**20) -> None:
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self.count = 0
        self.bytes = 0

    def has_room_for(self, size: int) -> bool:
        """Whether one more message of this size fits."""
        return self.count < self.max_messages and self.bytes + size <= self.max_bytes


class KeptMessages:
    """The messages that one exchange keeps, each under a name that the exchange type chooses, oldest first.

    Names, of at most 255 bytes, are those of the type: a number, a routing key. The broker stores persistent messages
    of durable exchanges, so they are there again after a restart, under their names and in their order. ``changed`` is
    called with the name of each message that is put or dropped, ``refused`` for each that does not fit.
    """

    __slots__ = ("_changed", "_message_by_name", "_refused", "_room")

    def __init__(
        self,
        room: Room | None = None,
        changed: Callable[[str], None] | None = None,
        refused: Callable[[], None] | None = None,
    ) -> None:
        self._message_by_name: dict[str, Message] = {}
        self._room = Room() if room is None else room
        self._changed = changed or _ignore
        self._refused = refused or _ignore

    def __len__(self) -> int:
        return len(self._message_by_name)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._message_by_name.values())

    @property
    def names(self) -> list[str]:
        """The names of all kept messages, oldest first."""
        return list(self._message_by_name)

    @property
    def newest_name(self) -> str | None:
        """The name of the message that was put last; ``None`` if there is none."""
        return next(reversed(self._message_by_name), None)

    def get(self, name: str) -> Message | None:
        """Return the message of a name; ``None`` if there is none."""
        return self._message_by_name.get(name)

    def put(self, name: str, message: Message) -> bool:
        """Keep a message as the newest, instead of the former one of this name; return whether it fits.

        The oldest messages of this exchange are dropped to make room for it.
        """
        self.drop(name)
        size = _size(name, message)
        while self._message_by_name and size <= self._room.max_bytes and not self._room.has_room_for(size):
            self.drop_oldest()
        if not self._room.has_room_for(size):
            self._refused()
            return False
        self._message_by_name[name] = message
        self._room.count += 1
        self._room.bytes += size
        self._changed(name)
        return True

    def release(self) -> None:
        """Report no further changes: the exchange and all its messages are gone."""
        self._changed = _ignore
        self._refused = _ignore

    def drop(self, name: str) -> None:
        """Drop the message of a name, if there is one."""
        message = self._message_by_name.pop(name, None)
        if message is not None:
            self._room.count -= 1
            self._room.bytes -= _size(name, message)
            self._changed(name)

    def drop_oldest(self) -> None:
        """Drop the oldest message; there must be one."""
        self.drop(next(iter(self._message_by_name)))


def _ignore(name: str = "") -> None:
    """Do nothing."""


def _size(name: str, message: Message) -> int:
    return len(message.body) + len(message.header.raw) + len(message.routing_key) + len(name) + _OVERHEAD
