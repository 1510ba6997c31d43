"""STOMP as the source and the destination of a bridge."""

from collections.abc import Callable
from itertools import count
from typing import Final

from pika.spec import BasicProperties
from stomp.utils import Frame

from gateway.bridges.parcel import Parcel
from gateway.bridges.stomp_connection import StompConnection

#: SENDs without an answer at a time.
_MOST_UNANSWERED: Final = 1000

_PERSISTENT: Final = 2

#: STOMP header to AMQP property, with RabbitMQ's names.
_PROPERTIES: Final = {
    "content-type": "content_type",
    "content-encoding": "content_encoding",
    "correlation-id": "correlation_id",
    "expiration": "expiration",
    "amqp-message-id": "message_id",
    "type": "type",
    "app-id": "app_id",
}

#: Headers of frames, which are no headers of messages; and those with a meaning for servers.
_OF_FRAMES: Final = frozenset(
    {
        *("destination", "message-id", "subscription", "ack", "content-length", "redelivered", "receipt", "persistent"),
        *("transaction", "priority", "reply-to", "user-id", "timestamp"),
    }
)


class StompSource:
    """Receives the messages of one subscription; each goes to the queue or topic of its destination's last part."""

    def __init__(self, connection: StompConnection, destination: str) -> None:
        self._connection = connection
        self._destination = destination
        self._receive: Callable[[Parcel], None] = lambda parcel: None
        self._tags = count(1)
        self._unsettled: dict[int, Frame] = {}
        connection.on_frame = self._received

    def start(self, receive: Callable[[Parcel], None]) -> None:
        """Subscribe, and call ``receive`` with each message."""
        self._receive = receive
        self._connection.subscribe(self._destination)

    def accept(self, tag: int) -> None:
        """Acknowledge a message to the server."""
        frame = self._unsettled.pop(tag, None)
        if frame is not None:
            self._connection.acknowledge(frame.headers["ack"])
            self._connection.settled()

    def requeue(self, tag: int) -> None:
        """Receive a message once more: some servers move what gets a NACK to a dead-letter queue."""
        frame = self._unsettled.pop(tag, None)
        if frame is not None:
            self._received(frame)

    def pause(self, is_paused: bool) -> None:
        """Do nothing: the number of unsettled messages is limited."""

    def close(self) -> None:
        """Close the connection; the server sends messages that are not settled again."""
        self._connection.close()

    def _received(self, frame: Frame) -> None:
        tag = next(self._tags)
        self._unsettled[tag] = frame
        body = frame.body or b""
        self._receive(
            Parcel(
                tag,
                "",
                frame.headers.get("destination", "").rpartition("/")[2],
                _amqp_properties(frame),
                body if isinstance(body, bytes) else body.encode(),
                frame.headers.get("redelivered") == "true",
            )
        )


class StompDestination:
    """Sends to one destination. The RECEIPT is the confirm."""

    def __init__(self, connection: StompConnection, destination: str) -> None:
        self.on_ready: Callable[[], None] = lambda: None
        self._connection = connection
        self._destination = destination
        self._numbers = count(1)
        self._unanswered: dict[int, Callable[[bool], None]] = {}
        connection.on_answer = self._answered

    @property
    def is_blocked(self) -> bool:
        """Whether too many messages wait for their answers."""
        return len(self._unanswered) >= _MOST_UNANSWERED

    def publish(self, parcel: Parcel, done: Callable[[bool], None]) -> None:
        """Send a message; see ``MessageDestination``."""
        number = next(self._numbers)
        self._unanswered[number] = done
        self._connection.send(self._destination, parcel.body, _stomp_headers(parcel.properties), number)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _answered(self, number: int) -> None:
        done = self._unanswered.pop(number, None)
        if done is not None:
            was_blocked = len(self._unanswered) == _MOST_UNANSWERED - 1
            done(True)
            if was_blocked and not self.is_blocked:
                self.on_ready()


def _amqp_properties(frame: Frame) -> BasicProperties:
    """Return the AMQP properties of a MESSAGE, with RabbitMQ's names of headers."""
    headers = frame.headers
    properties = BasicProperties(delivery_mode=_PERSISTENT if headers.get("persistent") == "true" else 1)
    for header, name in _PROPERTIES.items():
        if header in headers:
            setattr(properties, name, headers[header])
    if headers.get("priority", "").isdigit():
        properties.priority = min(int(headers["priority"]), 255)
    properties.reply_to = headers.get("reply-to")
    own = {key: item for key, item in headers.items() if key not in _OF_FRAMES and key not in _PROPERTIES}
    properties.headers = own or None
    return properties


def _stomp_headers(properties: BasicProperties) -> dict[str, str]:
    """Return the headers of a SEND; AMQP headers that are neither text nor numbers are left out."""
    own = properties.headers or {}
    headers = {
        str(key): str(item).lower() if isinstance(item, bool) else str(item)
        for key, item in own.items()
        if isinstance(item, str | int | float) and key not in _OF_FRAMES and key not in _PROPERTIES
    }
    for header, name in _PROPERTIES.items():
        if (value := getattr(properties, name)) is not None:
            headers[header] = str(value)
    if properties.priority is not None:
        headers["priority"] = str(properties.priority)
    if properties.reply_to:
        headers["reply-to"] = properties.reply_to
    if properties.delivery_mode == _PERSISTENT:
        headers["persistent"] = "true"
    return headers
