"""Kept decisions of interceptors that decide by the header of a message: what repeats is not asked again."""

from typing import TYPE_CHECKING, Final

from gateway.kernel.caches import remember

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Header, Message
    from gateway.kernel.messages.origin import Origin

#: The most decisions that are kept for a chain, and the longest header of one, in bytes.
_MOST: Final = 256
_LONGEST: Final = 1024


class HeaderDecision:
    """A message without its body, and the header that it gets; ``None`` if it stays as it is."""

    __slots__ = ("edited", "exchange", "origin", "routing_key")

    def __init__(self, exchange: str, routing_key: str, origin: "Origin", edited: "Header | None") -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.origin = origin
        self.edited = edited


class HeaderDecisions:
    """The decisions of one chain, by the header of the message.

    Adapters use one header object for the messages of a publisher that repeat their properties. A decision is kept when
    a header comes for the second time in a row, so that publishers whose headers all differ fill no memory.
    """

    __slots__ = ("_known", "_last")

    def __init__(self) -> None:
        self._known: dict[Header, HeaderDecision] = {}
        self._last: Header | None = None

    def find(self, message: "Message", origin: "Origin") -> "Message | None":
        """Return the message to publish if the decision about such a message is known."""
        known = self._known.get(message.header)
        if (
            known is None
            or known.origin is not origin
            or known.routing_key != message.routing_key
            or known.exchange != message.exchange
        ):
            return None
        edited = known.edited
        return message if edited is None else message.with_address(message.exchange, message.routing_key, edited)

    def keep(self, message: "Message", origin: "Origin", published: "Message") -> None:
        """Keep the decision about a message, unless more than its header changed."""
        header = message.header
        if header is not self._last:
            self._last = header
            return
        is_unchanged = published.body is message.body and published.exchange == message.exchange
        if is_unchanged and published.routing_key == message.routing_key and len(header.raw) <= _LONGEST:
            edited = None if published.header is header else published.header
            decision = HeaderDecision(message.exchange, message.routing_key, origin, edited)
            remember(self._known, header, decision, _MOST)
