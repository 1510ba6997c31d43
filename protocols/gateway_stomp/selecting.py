"""The ``selector`` of a SUBSCRIBE, as clients of ActiveMQ use it: which messages of a topic a subscription wants."""

from collections.abc import Mapping

from gateway.kernel.message import Message
from gateway.selectors import Selector, SelectorError
from gateway_stomp.destinations import Destination
from gateway_stomp.errors import StompError
from gateway_stomp.settings import StompSettings
from gateway_stomp.subscription import Selection


class Selecting:
    """Asks a selector. STOMP's headers are text, so text is compared with numbers as the number it spells."""

    __slots__ = ("_selector",)

    def __init__(self, selector: Selector) -> None:
        self._selector = selector

    def wants(self, message: Message) -> bool:
        """Whether the selector matches."""
        return self._selector.matches(message.properties)


def selection_for(headers: Mapping[str, str], destination: Destination, settings: StompSettings) -> Selection | None:
    """Return what a subscription selects; ``None`` for everything.

    :raises StompError: when the selector is none, or is for a queue: others may want what it leaves there.
    """
    text = headers.get("selector", "")
    if not settings.activemq or not text.strip():
        return None
    if destination.is_queue:
        raise StompError("Invalid selector", "a 'selector' chooses among the messages of a topic or an exchange")
    try:
        return Selecting(Selector.parse(text, converts_text=True))
    except SelectorError as error:
        raise StompError("Invalid selector", str(error)) from None
