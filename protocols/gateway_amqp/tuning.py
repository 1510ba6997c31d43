"""From the protocol header to an open connection: who it is, what both sides can take, which virtual host (2.2.4)."""

from collections.abc import Mapping
from typing import Final

from pamqp import commands

from gateway.kernel.messages.message import Value
from gateway_amqp.errors import FrameError

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"

#: Other spellings of 0-9-1's predecessors and of 0-9-1 itself that RabbitMQ talks 0-9-1 to.
ACCEPTED_HEADERS: Final = (PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09")

#: No frame may be larger before both sides agreed on more (4.2.3: frame-min-size).
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
    """Return the first method of a conversation."""
    properties = {**server_properties, "capabilities": CAPABILITIES}
    return commands.Connection.Start(0, 9, properties, mechanisms, "en_US")  # type: ignore[arg-type]  # a table of ours


def capabilities(client_properties: Mapping[str, Value]) -> frozenset[str]:
    """Return what the client announced it can do."""
    announced = client_properties.get("capabilities")
    if not isinstance(announced, dict):
        return frozenset()
    return frozenset(name for name, value in announced.items() if value is True)


class Tuning:
    """What both sides agreed on. A limit of 0 from the client is no limit, which the server's own does not allow."""

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
