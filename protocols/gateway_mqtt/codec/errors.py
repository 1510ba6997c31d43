"""What a client's bytes did wrong, with the reason code that MQTT 5.0 tells it by; 3.x closes without a word (4.13)."""

from typing import Final

from gateway.kernel.errors import ProtocolViolation
from gateway_mqtt.codec.reasons import ReasonCode

#: Characters of a client's text that a message of ours repeats.
_SHOWN: Final = 80


class MqttError(ProtocolViolation):
    """A rule of MQTT was broken; the connection ends with this reason."""

    def __init__(self, reason: ReasonCode, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def malformed(text: str) -> MqttError:
    """Return the error for a packet that cannot be parsed as its specification says (1.2)."""
    return MqttError(ReasonCode.MALFORMED_PACKET, text)


def protocol_error(text: str) -> MqttError:
    """Return the error for a packet that can be parsed, and says what it must not say (1.2)."""
    return MqttError(ReasonCode.PROTOCOL_ERROR, text)


def shown(text: str) -> str:
    """Return a client's text as error messages and log lines repeat it: its beginning, if it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
