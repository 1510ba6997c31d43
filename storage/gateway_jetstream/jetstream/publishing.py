"""Publishing to a stream with its acknowledgement, and with the headers that JetStream decides by."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Final

from twisted.internet.defer import Deferred

from gateway.kernel.compiling import mypyc_attr
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.client.requests import fire
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.codec.headers import encode_headers
from gateway_jetstream.errors import NatsError, NatsProtocolError
from gateway_jetstream.jetstream.api import decode_answer

#: A repeated message with the same value is stored once, within the duplicate window of the stream.
MESSAGE_ID: Final = "Nats-Msg-Id"
#: Append only while the last message of a subject has this sequence, 0 if it must have none.
EXPECTED_SEQUENCE: Final = "Nats-Expected-Last-Subject-Sequence"
#: Of which subject; that of the message without it.
EXPECTED_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"

#: The usual acknowledgement. Any other is read as JSON, which takes longer.
_STORED: Final = re.compile(rb'\{"stream":"[^"\\]*", ?"seq":([1-9][0-9]{0,18})\}')


class PublishAck:
    """The acknowledgement of a message: a majority has it on disk."""

    __slots__ = ("is_duplicate", "sequence")

    def __init__(self, sequence: int, is_duplicate: bool) -> None:
        self.sequence = sequence
        self.is_duplicate = is_duplicate


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamPublisher(ABC):
    """Publishes messages to streams."""

    @abstractmethod
    def send(
        self,
        subject: str,
        payload: bytes,
        fields: dict[str, str],
        timeout_s: float,
        published: "Callable[[PublishAck | NatsError], None]",
    ) -> None:
        """Publish a message with headers, without waiting for the end of the turn.

        ``published`` is called once, with the acknowledgement or the reason why there is none; with a reason perhaps
        before this returns.
        """

    async def __call__(self, subject: str, payload: bytes, fields: dict[str, str], timeout_s: float) -> PublishAck:
        """Return the acknowledgement. :raises NatsError: if the message was refused, or there is none in time."""
        waiting: Deferred[PublishAck] = Deferred()
        self.send(subject, payload, fields, timeout_s, partial(fire, waiting))
        return await waiting


class JetStreamPublisher(StreamPublisher):
    """Publishes over a client."""

    def __init__(self, client: NatsClient) -> None:
        self._client = client

    def send(
        self,
        subject: str,
        payload: bytes,
        fields: dict[str, str],
        timeout_s: float,
        published: "Callable[[PublishAck | NatsError], None]",
    ) -> None:
        """Send a request, whose answer is the acknowledgement."""
        try:
            header = encode_headers(fields) if fields else b""
            self._client.ask(
                subject, payload, header, timeout_s, lambda answer: published(self._acknowledged(subject, answer))
            )
        except NatsError as error:
            published(error)

    def _acknowledged(self, subject: str, answer: Delivered | NatsError) -> PublishAck | NatsError:
        if isinstance(answer, NatsError):
            return answer
        stored = _STORED.fullmatch(answer.payload)
        if stored is not None:
            return PublishAck(int(stored[1]), is_duplicate=False)
        server = self._client.server
        try:
            found = decode_answer(answer, server, subject)
        except NatsError as error:
            return error
        sequence = found.get("seq")
        if type(sequence) is not int or sequence <= 0:
            return NatsProtocolError("the acknowledgement has no sequence", server=server, subject=subject)
        return PublishAck(sequence, found.get("duplicate") is True)
