"""Messages of a stream, as consumers, direct gets and the leader deliver them."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.codec.headers import decode_headers
from gateway_jetstream.errors import MessageNotFound, NatsProtocolError
from gateway_jetstream.jetstream.api import JetStreamApi

_ACK: Final = "$JS.ACK."


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a stream. ``header`` is its block of headers; a consumer knows of ``pending`` ones after it."""

    subject: str
    sequence: int
    header: bytes
    payload: bytes
    pending: int = 0

    def field(self, name: str) -> str:
        """Return a header; empty without it."""
        return decode_headers(self.header).fields.get(name, "")


@dataclass(frozen=True, slots=True)
class DeliveryPlace:
    """The place of a delivery in its stream and consumer, and the number of those that follow."""

    stream_sequence: int
    consumer_sequence: int
    pending: int


def parse_place(reply: str) -> DeliveryPlace:
    """Return the place in the reply subject of a delivery. :raises NatsProtocolError: if it is none.

    ``$JS.ACK.stream.consumer.deliveries.sequence.consumer sequence.time.pending``, and in the newer form two more parts
    (domain, account) before the stream, and perhaps a random one at the end.
    """
    parts = reply.split(".")
    if not reply.startswith(_ACK) or len(parts) < 9 or len(parts) == 10:
        raise NatsProtocolError(f"a delivery has the reply subject {reply[:80]!r}")
    numbers = parts[5:9] if len(parts) == 9 else parts[7:11]
    if not all(each.isascii() and each.isdigit() and len(each) <= 20 for each in numbers):
        raise NatsProtocolError(f"a delivery has the reply subject {reply[:80]!r}")
    return DeliveryPlace(int(numbers[0]), int(numbers[1]), int(numbers[3]))


async def direct_get(api: JetStreamApi, stream: str, sequence: int) -> StreamMessage:
    """Return a message from any replica, which may be behind. :raises MessageNotFound: if it is not there."""
    subject = f"$JS.API.DIRECT.GET.{stream}"
    answer = await api.client.request(subject, b'{"seq":%d}' % sequence)
    headers = decode_headers(answer.header)
    if headers.status:
        kind = MessageNotFound if headers.status == 404 else NatsProtocolError
        raise kind(headers.description, server=api.client.server, subject=subject, code=headers.status)
    return _direct(answer, headers.fields, subject)


def _direct(answer: Delivered, fields: Mapping[str, str], subject: str) -> StreamMessage:
    number = fields.get("Nats-Sequence", "")
    if not (number.isascii() and number.isdigit() and len(number) <= 20):
        raise NatsProtocolError("a direct get has no sequence", subject=subject)
    return StreamMessage(fields.get("Nats-Subject", ""), int(number), answer.header, answer.payload)


async def last_of_subject(
    api: JetStreamApi, stream: str, subject: str, timeout_s: float | None = None
) -> StreamMessage | None:
    """Return the last message of a subject as the stream's leader has it; ``None`` if there is none."""
    try:
        found = await api.call(f"STREAM.MSG.GET.{stream}", {"last_by_subj": subject}, timeout_s)
    except MessageNotFound:
        return None
    return decode_stored(found.get("message"))


def decode_stored(fields: Any) -> StreamMessage:  # Any: a value of JSON
    """Return the message in an answer to STREAM.MSG.GET. :raises NatsProtocolError: if it is none."""
    if not isinstance(fields, dict) or type(fields.get("seq")) is not int:
        raise NatsProtocolError("JetStream sent a message without its sequence")
    try:
        header = base64.b64decode(str(fields.get("hdrs") or ""), validate=True)
        payload = base64.b64decode(str(fields.get("data") or ""), validate=True)
    except (binascii.Error, ValueError):
        raise NatsProtocolError("JetStream sent a message that is not in base 64") from None
    return StreamMessage(str(fields.get("subject", "")), fields["seq"], header, payload)
