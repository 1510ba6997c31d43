"""Publishing to a stream with its acknowledgement, and with the headers that JetStream decides by."""

from dataclasses import dataclass
from typing import Final, Protocol

from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.codec.headers import encode_headers
from gateway_jetstream.errors import NatsProtocolError
from gateway_jetstream.jetstream.api import decode_answer

#: A repeated message with the same value is stored once, within the duplicate window of the stream.
MESSAGE_ID: Final = "Nats-Msg-Id"
#: Append only while the last message of a subject has this sequence, 0 if it must have none.
EXPECTED_SEQUENCE: Final = "Nats-Expected-Last-Subject-Sequence"
#: Of which subject; that of the message without it.
EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"


@dataclass(frozen=True, slots=True)
class PublishAck:
    """The acknowledgement of a message: a majority has it on disk."""

    sequence: int
    is_duplicate: bool


class Publish(Protocol):
    """Publishes a message to a stream."""

    async def __call__(self, subject: str, payload: bytes, fields: dict[str, str], timeout_s: float, /) -> PublishAck:
        """Return the acknowledgement. :raises NatsError: if the message was refused, or there is none in time."""
        ...


class JetStreamPublisher:
    """Publishes over a client."""

    def __init__(self, client: NatsClient) -> None:
        self._client = client

    async def __call__(self, subject: str, payload: bytes, fields: dict[str, str], timeout_s: float, /) -> PublishAck:
        """Publish with headers."""
        header = encode_headers(fields) if fields else b""
        answer = await self._client.request(subject, payload, header=header, timeout_s=timeout_s, at_once=True)
        server = self._client.server
        found = decode_answer(answer, server, subject)
        sequence = found.get("seq")
        if type(sequence) is not int or sequence <= 0:
            raise NatsProtocolError("the acknowledgement has no sequence", server=server, subject=subject)
        return PublishAck(sequence, found.get("duplicate") is True)
