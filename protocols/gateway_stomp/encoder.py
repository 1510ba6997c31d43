"""Encoder of MESSAGE frames. The part that is equal for all subscribers of a version is encoded once.

A message for a hundred subscribers is delivered to them one after the other, so a cache of the last message is enough.
The next message often has the same header and size as the last one, so that the end of its head is equal too. The parts
of one subscriber (its id, the destination, the message-id) come first in the frame.
"""

from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.messages.message import Header, Message
from gateway_stomp.destinations import shown
from gateway_stomp.frames import END
from gateway_stomp.header import STOMP, StompHeader
from gateway_stomp.translate import headers_of
from gateway_stomp.versions import Version

#: Cached ends of heads; when there are more, all are dropped.
_KEPT: Final = 1024

#: Longer headers are not cached: long values seldom repeat.
_LONGEST_KEPT: Final = 512


class Encoder:
    """Encodes for the clients of one version. Owns the cached encodings of the last message and the end of its head."""

    __slots__ = ("_again", "_header", "_message", "_rest", "_size", "_tail", "_tails", "_topic_exchange", "_version")

    def __init__(self, version: Version, topic_exchange: str) -> None:
        self._version = version
        self._topic_exchange = topic_exchange
        self._message: Message | None = None
        self._again = False
        self._rest = b""
        self._header: Header | None = None
        self._size = 0
        self._tail = b""
        self._tails: dict[tuple[Header, int, bool], bytes] = {}

    def beginning(self, subscription: str, exchange: str, routing_key: str) -> bytes:
        """Return the frame up to the value of its message-id, for one subscriber. An empty id is left out."""
        escape = self._version.escape
        destination = escape(shown(exchange, routing_key, self._topic_exchange))
        line = f"subscription:{escape(subscription)}\n" if subscription else ""
        return f"MESSAGE\n{line}destination:{destination}\nmessage-id:".encode()

    def rest(self, message: Message, redelivered: bool) -> bytes:
        """Return the frame after the message-id, which is the same for every subscriber."""
        if message is self._message and redelivered is self._again:
            return self._rest
        body = message.body
        if message.header is not self._header or len(body) != self._size or redelivered is not self._again:
            self._find_tail(message.header, len(body), redelivered)
        self._message = message
        self._rest = rest = self._tail + body + END
        return rest

    def _find_tail(self, header: Header, size: int, redelivered: bool) -> None:
        """Set the end of the head for messages with this header and size."""
        self._header, self._size, self._again = header, size, redelivered
        if isinstance(header, StompHeader) and header.is_unique:
            self._tail = self._new_tail(header, size, redelivered)
            return
        key = header, size, redelivered
        tail = self._tails.get(key)
        if tail is None:
            tail = self._new_tail(header, size, redelivered)
            if len(tail) <= _LONGEST_KEPT:
                remember(self._tails, key, tail, _KEPT)
        self._tail = tail

    def _new_tail(self, header: Header, size: int, redelivered: bool) -> bytes:
        """Return the rest of the head; content-length allows any bytes in the body (1.2, "Header content-length")."""
        flag = b"true" if redelivered else b"false"
        return b"\nredelivered:%b\n%bcontent-length:%d\n\n" % (flag, self._lines(header), size)

    def _lines(self, header: Header) -> bytes:
        """Return the header lines of the publisher."""
        if not isinstance(header, StompHeader) and header.format is STOMP:
            header = STOMP.header(header.raw)  # the kernel edited it and returned a plain header
        if isinstance(header, StompHeader) and header.is_plain:
            return header.lines
        escape = self._version.escape
        headers = headers_of(header.properties)
        return "".join([f"{escape(name)}:{escape(value)}\n" for name, value in headers.items()]).encode(
            errors="replace"
        )


class Encoders:
    """The encoders of a listener: all its clients of one version share encodings."""

    def __init__(self, topic_exchange: str) -> None:
        self._encoders = {version: Encoder(version, topic_exchange) for version in Version}

    def of(self, version: Version) -> Encoder:
        """Return the encoder for clients of a version."""
        return self._encoders[version]
