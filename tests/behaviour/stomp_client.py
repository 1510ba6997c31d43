"""The STOMP client of behaviour tests; it raises ``Unsupported`` for what STOMP cannot express."""

from collections.abc import Mapping
from datetime import datetime
from itertools import count
from typing import Any, Final

from tests.behaviour.scenario import AmqpReceiver, Unsupported
from tests.protocols.stomp.dialogue import receipt
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

#: Properties that are strings in STOMP too, with their header names.
_TEXTS: Final = {
    "content_type": "content-type",
    "content_encoding": "content-encoding",
    "correlation_id": "correlation-id",
    "expiration": "expiration",
    "message_id": "amqp-message-id",
    "type": "type",
    "app_id": "app-id",
}


class StompClient(AmqpReceiver):
    """A STOMP 1.2 publisher with receipts. It receives over AMQP, which shows all properties."""

    def __init__(self, broker: AllProtocolsBroker) -> None:
        self._publisher = broker.stomp()
        super().__init__(broker, self._publisher.lose)
        self._receipts = count(1)

    def publish(self, exchange: str, routing_key: str, body: bytes, **properties: Any) -> bool:
        """Send a SEND with a receipt; return whether the receipt came."""
        id = f"r{next(self._receipts)}"
        destination = f"/exchange/{exchange}/{routing_key}" if exchange else f"/amq/queue/{routing_key}"
        if not routing_key and not exchange:
            raise Unsupported("a queue without a name")
        headers = {"receipt": id}
        for name, value in properties.items():
            headers |= _headers(name, value)
        received = self._publisher.publish(destination, body, headers)
        assert received in ([receipt(id)], []), received
        return bool(received)


def _headers(name: str, value: object) -> dict[str, str]:
    """Return a property as headers."""
    match name, value:
        case ("delivery_mode", 1) | (_, None):
            return {}
        case "delivery_mode", 2:
            return {"persistent": "true"}
        case "priority", int():
            return {"priority": str(value)}
        case "timestamp", datetime():
            return {"timestamp": str(int(value.timestamp()))}
        case "headers", Mapping() if all(isinstance(each, str | int) for each in value.values()):
            return {header: str(each) for header, each in value.items()}
        case text, str() if text in _TEXTS:
            return {_TEXTS[text]: value}
        case _:
            raise Unsupported(f"{name} {value!r}")
