"""The ``selector`` header of a SUBSCRIBE, as clients of ActiveMQ use it: a filter of a subscription's messages."""

from collections.abc import Mapping

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.consumer import Selection
from gateway.selectors import Selector, SelectorError
from gateway_stomp.errors import StompError
from gateway_stomp.listener_context import StompContext


class HeaderSelector:
    """Evaluates a selector. STOMP's headers are text, so for a comparison with a number the text is converted."""

    __slots__ = ("_selector",)

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def wants(self, message: Message, deliveries: int, is_redelivered: bool) -> bool:
        """Return whether the selector matches."""
        return self._selector.matches(message.properties, deliveries + 1, is_redelivered)


def selection_for(headers: Mapping[str, str], settings: StompContext) -> Selection | None:
    """Return the filter of a subscription, ``None`` without one. :raises StompError: when the selector is invalid."""
    text = headers.get("selector", "")
    if not settings.activemq or not text.strip():
        return None
    try:
        return HeaderSelector(Selector.parse(text, converts_text=True))
    except SelectorError as error:
        raise StompError("Invalid selector", str(error)) from None
