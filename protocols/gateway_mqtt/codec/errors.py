"""Errors for protocol violations, with the MQTT 5.0 reason code; 3.x closes without an answer (4.13)."""

from typing import Final

from gateway.kernel.errors import ProtocolViolation
from gateway_mqtt.codec.reasons import ReasonCode

#: The length to which a client's text is cut in messages, in characters.
_SHOWN: Final = 80


class MqttError(ProtocolViolation):
    """A violation of the MQTT specification; the connection ends with this reason code."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def malformed(text: str) -> MqttError:
    """Return the error for a packet that cannot be parsed (1.2)."""
    return MqttError(ReasonCode.MALFORMED_PACKET, text)


def protocol_error(text: str) -> MqttError:
    """Return the error for a packet that can be parsed but is not allowed (1.2)."""
    return MqttError(ReasonCode.PROTOCOL_ERROR, text)


def shown(text: str) -> str:
    """Return a client's text for error messages and log lines, cut if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
