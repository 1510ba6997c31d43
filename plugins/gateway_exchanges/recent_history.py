"""x-recent-history: a fanout that hands the latest messages to each new destination.

The argument ``x-recent-history-length`` is their number, 20 by default. Messages with the header
``x-recent-history-no-store: true`` are routed, but not kept.
"""

from collections.abc import Iterable
from typing import Final

from gateway.api import Arguments, Binding, ExchangeTypes, KeptMessages, Message, PreconditionFailed, hookimpl
from gateway_exchanges.fanout import Fanout

LENGTH: Final = "x-recent-history-length"
NO_STORE: Final = "x-recent-history-no-store"

DEFAULT_LENGTH: Final = 20


class RecentHistory(Fanout):
    """A fanout that hands its latest messages to each new destination; it keeps them under rising numbers."""

    routes_by_key = False

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self._length = _length(arguments)
        self._kept = KeptMessages()

    def attach(self, kept: KeptMessages) -> None:
        """Set where to keep messages."""
        self._kept = kept

    def published(self, message: Message) -> None:
        """Keep a message as the newest, and drop the oldest if there are too many."""
        if message.headers.get(NO_STORE) is True:
            return
        newest = self._kept.newest_name
        self._kept.put(str(0 if newest is None else int(newest) + 1), message)
        while len(self._kept) > self._length:
            self._kept.drop_oldest()

    def bound(self, binding: Binding) -> Iterable[Message]:
        """Return all kept messages, oldest first."""
        return self._kept


def _length(arguments: Arguments) -> int:
    """Return the number of messages to keep. :raises PreconditionFailed: with RabbitMQ's text."""
    length = arguments.get(LENGTH)
    if LENGTH not in arguments:
        return DEFAULT_LENGTH
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise PreconditionFailed(f"Invalid argument {length!r}, '{LENGTH}' must be a positive integer")
    return length


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-recent-history``."""
    return {"x-recent-history": RecentHistory}
