"""Connection start and negotiation: ``connection.start``, capabilities and the limits of tune-ok (2.2.4)."""

from collections.abc import Mapping
from typing import Final

from pamqp import commands

from gateway.kernel.messages.message import Value
from gateway_amqp.errors import FrameError

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

#: Protocol headers of earlier versions, and variants of 0-9-1, to which RabbitMQ answers with 0-9-1.
ACCEPTED_HEADERS: Final = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")

#: The largest frame before the negotiation (4.2.3: frame-min-size).
FRAME_MIN: Final = 4096

CAPABILITIES: Final[dict[str, Value]] = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}


def start(server_properties: Mapping[str, Value], mechanisms: str) -> commands.Connection.Start:
    """Return ``connection.start``."""
    properties = {**server_properties, "capabilities": CAPABILITIES}
    return commands.Connection.Start(0, 9, properties, mechanisms, "en_US")  # type: ignore[arg-type]  # a table of ours


def capabilities(client_properties: Mapping[str, Value]) -> frozenset[str]:
    """Return the capabilities that the client announced."""
    announced = client_properties.get("capabilities")
    if not isinstance(announced, dict):
        return frozenset()
    return frozenset(name for name, value in announced.items() if value is True)


class Tuning:
    """The negotiated limits. A limit of 0 from the client selects the server's limit."""

    __slots__ = ("channel_max", "frame_max", "heartbeat_s")

    def __init__(self, method: commands.Connection.TuneOk, frame_max: int, channel_max: int) -> None:
        self.frame_max = _agreed("frame_max", method.frame_max, frame_max)
        self.channel_max = _agreed("channel_max", method.channel_max, channel_max)
        self.heartbeat_s = method.heartbeat
        if self.frame_max < FRAME_MIN:
            raise _not_agreed(f"frame_max = {self.frame_max} is lower than the minimum allowed value ({FRAME_MIN})")


def _agreed(name: str, wanted: int, offered: int) -> int:
    if wanted > offered:
        raise _not_agreed(f"{name} = {wanted} is higher than the maximum allowed value ({offered})")
    return wanted or offered


def _not_agreed(text: str) -> FrameError:
    return FrameError(530, f"failed to negotiate connection parameters: negotiated {text}", 10, 31)
