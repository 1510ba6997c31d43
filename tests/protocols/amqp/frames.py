"""Frames for tests to send: methods, contents and invalid frames, in the encoding of a client."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from pamqp import commands
from pamqp.base import Frame

from gateway.kernel.messages.message import Properties, Value
from gateway_amqp.content import BODY, FRAME_HEAD, HEADER
from gateway_amqp.methods import encode_method
from gateway_amqp.properties import encode_properties
from gateway_amqp.tuning import PROTOCOL_HEADER

ALL_CAPABILITIES: Final[dict[str, Value]] = {
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """Return an encoded frame."""
    return FRAME_HEAD.pack(kind, channel, len(payload)) + payload + b"\xce"


def content_header(
    size: int, properties: bytes = b"\0\0", channel: int = 1, class_id: int = 60, weight: int = 0
) -> bytes:
    """Return a content header frame."""
    head = class_id.to_bytes(2, "big") + weight.to_bytes(2, "big") + size.to_bytes(8, "big")
    return frame(HEADER, channel, head + properties)


class Publication:
    """A ``basic.publish`` with its content; ``pieces`` cuts the ``body`` into frames, one if it is not empty."""

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"hi",
        *,
        mandatory: bool = False,
        immediate: bool = False,
        pieces: int | None = None,
        raw: bytes | None = None,
        **properties: Any,  # Any: some of the fourteen properties, each of its own type
    ) -> None:
        self._method = commands.Basic.Publish(0, exchange, routing_key, mandatory, immediate)
        self.properties = encode_properties(Properties(**properties)) if raw is None else raw
        self.body = body
        self._piece_size = pieces or max(len(body), 1)

    def on(self, channel: int) -> bytes:
        """Return the frames for a channel."""
        bodies = (
            frame(BODY, channel, self.body[start : start + self._piece_size])
            for start in range(0, len(self.body), self._piece_size)
        )
        head = content_header(len(self.body), self.properties, channel)
        return encode_method(channel, self._method) + head + b"".join(bodies)


publish = Publication

Sent: TypeAlias = Frame | Publication | bytes
Method = TypeVar("Method", bound=Frame)


def wire(*frames: Sent, channel: int = 1) -> bytes:
    """Encode the frames as one write on a channel; methods of the connection class use channel 0."""
    return b"".join(_bytes_of(sent, channel) for sent in frames)


def _bytes_of(sent: Sent, channel: int) -> bytes:
    if isinstance(sent, bytes):
        return sent
    if isinstance(sent, Publication):
        return sent.on(channel)
    return encode_method(0 if sent.index >> 16 == 10 else channel, sent)


def start_ok(
    response: str, mechanism: str = "PLAIN", capabilities: Mapping[str, Value] = ALL_CAPABILITIES
) -> commands.Connection.StartOk:
    """Return an answer to ``connection.start``."""
    properties: dict[str, Any] = {"product": "test", "capabilities": dict(capabilities)}  # Any: pamqp's own table type
    return commands.Connection.StartOk(properties, mechanism, response, "en_US")


def asked(kind: type[Method], **arguments: object) -> Method:
    """Return a method with these arguments, which pamqp's own constructor may refuse."""
    method = kind()
    for name, value in arguments.items():
        assert name in method.attributes()
        setattr(method, name, value)
    return method


def handshake(channel_max: int = 2047, frame_max: int = 131_072) -> Iterable[Sent]:
    """Return all frames of a client up to an open connection with channel 1."""
    return (
        PROTOCOL_HEADER,
        start_ok("\0guest\0guest"),
        commands.Connection.TuneOk(channel_max, frame_max, 60),
        commands.Connection.Open("/"),
        commands.Channel.Open(),
    )
