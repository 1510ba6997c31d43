"""From the chunks of a stream to messages on their way to a consumer."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.chunks import ENTRY_FORMAT, ENTRY_SIZE, HEAD_SIZE, chunk_heads
from gateway.kernel.messages.contents import LENGTHS_SIZE, body_at, is_narrow
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from gateway.kernel.messages.contents import ContentReader
    from gateway.kernel.messages.message import Header
    from gateway.kernel.streams.filters import Filter

_unpack_entry = struct.Struct(ENTRY_FORMAT).unpack_from

#: The length of the header stands last among the lengths with which an envelope begins.
_SIZE_AT: Final = LENGTHS_SIZE - 4
_unpack_size = struct.Struct(">I").unpack_from

#: Nothing that is stored begins with this.
_NO_SIZES: Final = b"\0"


class Envelopes:
    """Reads the envelopes in some data, one after another: ``exchange``, ``routing_key`` and ``header`` are the last.

    Where neighbours differ in their headers alone, as with an id in each, the rest is compared and not decoded again:
    that was a third of the cost.
    """

    __slots__ = ("_data", "_names", "_reader", "_sizes", "exchange", "header", "routing_key")

    def __init__(self, data: bytes, reader: "ContentReader") -> None:
        self._data = data
        self._reader = reader
        self._sizes = self._names = b""
        self.exchange = self.routing_key = ""
        self.header: Header | None = None

    def read(self, at: int) -> "tuple[bytes, Header]":
        """Read the envelope that begins at ``at``; return its bytes and its header."""
        data, names_at = self._data, at + LENGTHS_SIZE
        if self.header is not None and data.startswith(self._sizes, at) and data.startswith(self._names, names_at):
            header_at = names_at + len(self._names)
            end = header_at + _unpack_size(data, at + _SIZE_AT)[0]
            self.header = header = self.header.format.header(data[header_at:end])
            return data[at:end], header
        envelope = data[at : body_at(data, at)]
        self.exchange, self.routing_key, self.header = self._reader.said(envelope)
        if not is_narrow(envelope):  # too long a name for the comparison, which nothing but an attack sends
            self._sizes = _NO_SIZES
            return envelope, self.header
        self._sizes = envelope[:_SIZE_AT]
        self._names = envelope[LENGTHS_SIZE : len(envelope) - _unpack_size(envelope, _SIZE_AT)[0]]
        return envelope, self.header


def queued_messages(
    data: bytes, offset: int, end: int, reader: "ContentReader", wanted: "Filter | None"
) -> Iterator[QueuedMessage]:
    """Yield the messages in ``data`` from ``offset`` up to ``end`` that are wanted: all, where no filter is given.

    The position of each is its offset. Neighbours that differ in their bodies alone, which is the rule, are told by
    comparing bytes. :raises StorageError: when the data are torn, or a newer gateway wrote them.
    """
    envelopes = Envelopes(data, reader)
    envelope = b""
    header = None
    for head in chunk_heads(data):
        at = head.position + HEAD_SIZE
        for place in range(head.first, min(head.end, end)):
            timestamp_ms, filter_size, content_size = _unpack_entry(data, at)
            content = at + ENTRY_SIZE + filter_size
            at = content + content_size
            if place < offset or (wanted is not None and not wanted.takes(data[content - filter_size : content])):
                continue
            if header is None or not data.startswith(envelope, content):
                envelope, header = envelopes.read(content)
                exchange, routing_key = envelopes.exchange, envelopes.routing_key
            message = Message(exchange, routing_key, header, data[content + len(envelope) : at])
            yield QueuedMessage(message, place, timestamp_ms, True)
