"""From the chunks of a stream to messages on their way to a consumer."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.chunks import ENTRY_FORMAT, ENTRY_SIZE, HEAD_SIZE, chunk_heads
from gateway.kernel.contents import body_at
from gateway.kernel.message import Message
from gateway.kernel.queued_message import QueuedMessage

if TYPE_CHECKING:
    from gateway.kernel.contents import ContentReader
    from gateway.kernel.stream_filters import Filter

_unpack_entry = struct.Struct(ENTRY_FORMAT).unpack_from


def queued_messages(
    data: bytes, offset: int, end: int, reader: "ContentReader", wanted: "Filter | None"
) -> Iterator[QueuedMessage]:
    """Yield the messages in ``data`` from ``offset`` up to ``end`` that are wanted: all, where no filter is given.

    The position of each is its offset. Neighbours that differ in their bodies alone, which is the rule, are told by
    comparing bytes. :raises StorageError: when the data are torn, or a newer gateway wrote them.
    """
    envelope = b""
    exchange = routing_key = ""
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
                envelope = data[content : body_at(data, content)]
                exchange, routing_key, header = reader.said(envelope)
            message = Message(exchange, routing_key, header, data[content + len(envelope) : at])
            yield QueuedMessage(message, place, timestamp_ms, True)
