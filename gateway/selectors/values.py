"""The values of a selector's names in a message: its headers and the fields that JMS defines."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from gateway.kernel.messages.message import Properties, Value
from gateway.selectors.expressions import Opaque, Operand
from gateway.selectors.numbers import ConvertibleText

#: The priority of a message without one (JMS 2.0, 3.4.10).
DEFAULT_PRIORITY: Final = 4

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


class MessageValues:
    """The values of one message. A header overrides the field of its name, because RabbitMQ's JMS client sends
    headers.

    The delivery count, if known, overrides both: 1 is the first delivery.
    """

    def __init__(
        self,
        properties: Properties,
        delivery_count: int | None = None,
        is_redelivered: bool | None = None,
        *,
        converts_text: bool = False,
    ) -> None:
        self._properties = properties
        self._delivery_count = delivery_count
        self._is_redelivered = is_redelivered
        self._converts_text = converts_text

    def value(self, name: str) -> Operand:
        """Return the header or field of this name, ``None`` if there is none."""
        if name == "JMSXDeliveryCount" and self._delivery_count is not None:
            return self._delivery_count
        if name == "JMSRedelivered" and self._is_redelivered is not None:
            return self._is_redelivered
        headers = self._properties.headers
        if name in headers:
            return self._converted(operand(headers[name]))
        field = FIELDS.get(name)
        return None if field is None else self._converted(field(self._properties))

    def _converted(self, value: Operand) -> Operand:
        return ConvertibleText(value) if self._converts_text and isinstance(value, str) else value


def operand(value: Value) -> Operand:
    """Return a header's value for selectors: a timestamp in milliseconds, a decimal as the nearest float."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return _milliseconds(value)
        case Decimal() if not value.is_snan():
            return float(value)
    return Opaque.OPAQUE


def _milliseconds(time: datetime) -> int:
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND


#: The fields that a selector may name (JMS 2.0, 3.8.1.1), plus JMSReplyTo and two JMS properties (3.5.9).
FIELDS: Final[Mapping[str, Callable[[Properties], Operand]]] = {
    "JMSDeliveryMode": lambda properties: "PERSISTENT" if properties.delivery_mode == 2 else "NON_PERSISTENT",
    "JMSPriority": lambda properties: DEFAULT_PRIORITY if properties.priority is None else properties.priority,
    "JMSTimestamp": lambda properties: operand(properties.timestamp),
    "JMSMessageID": lambda properties: properties.message_id,
    "JMSCorrelationID": lambda properties: properties.correlation_id,
    "JMSType": lambda properties: properties.type,
    "JMSReplyTo": lambda properties: properties.reply_to,
    "JMSXUserID": lambda properties: properties.user_id,
    "JMSXAppID": lambda properties: properties.app_id,
}
