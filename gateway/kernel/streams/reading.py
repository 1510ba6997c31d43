"""Decoding of stream chunks to messages for a consumer."""

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.errors import ProtocolViolation, Refused, UnreadableRecord
from gateway.kernel.messages.chunks import ENTRY_FORMAT, ENTRY_SIZE, HEAD_SIZE, chunk_heads, incomplete
from gateway.kernel.messages.contents import LENGTHS_SIZE, body_at, is_narrow
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from gateway.kernel.messages.contents import ContentReader
    from gateway.kernel.messages.message import Header
    from gateway.kernel.streams.filters import Filter

_unpack_entry = struct.Struct(ENTRY_FORMAT).unpack_from

#: The position of the header's length, the last length at the start of an envelope.
_SIZE_AT: Final = LENGTHS_SIZE - 4
_unpack_size = struct.Struct(">I").unpack_from

#: Different from the start of any stored envelope.
_NO_SIZES: Final = b"\0"


class Envelopes:
    """Decodes consecutive envelopes; ``exchange``, ``routing_key`` and ``header`` are those of the last one.

    If neighbours differ only in their headers, for example in a message id, the rest is compared and not decoded again;
    decoding was a third of the cost.
    """

    __slots__ = ("_data", "_names", "_reader", "_sizes", "exchange", "header", "routing_key")

    def __init__(self, data: bytes, reader: "ContentReader") -> None:
        self._data = data
        self._reader = reader
        self._sizes = self._names = b""
        self.exchange = self.routing_key = ""
        self.header: Header | None = None

    def read(self, at: int) -> "tuple[bytes, Header]":
        """Decode the envelope that begins at ``at``; return its bytes and its header.

        :raises UnreadableRecord: if it is incomplete, or its header cannot be decoded.
        :raises StorageError: if a newer gateway wrote it.
        """
        data, names_at = self._data, at + LENGTHS_SIZE
        if self.header is not None and data.startswith(self._sizes, at) and data.startswith(self._names, names_at):
            header_at = names_at + len(self._names)
            end = header_at + _unpack_size(data, at + _SIZE_AT)[0]
            try:
                self.header = header = self.header.format.header(data[header_at:end])
            except (ProtocolViolation, Refused) as error:
                raise UnreadableRecord(f"the header of a message cannot be decoded: {error}") from None
            return data[at:end], header
        envelope = data[at : body_at(data, at)]
        self.exchange, self.routing_key, self.header = self._reader.decode(envelope)
        if not is_narrow(envelope):  # such a long name is not worth a comparison: ordinary clients never send it
            self._sizes = _NO_SIZES
            return envelope, self.header
        self._sizes = envelope[:_SIZE_AT]
        self._names = envelope[LENGTHS_SIZE : len(envelope) - _unpack_size(envelope, _SIZE_AT)[0]]
        return envelope, self.header


def queued_messages(
    data: bytes,
    offset: int,
    end: int,
    reader: "ContentReader",
    wanted: "Filter | None",
    on_unreadable: "Callable[[UnreadableRecord], None] | None" = None,
) -> Iterator[QueuedMessage]:
    """Yield the messages in ``data`` from ``offset`` up to ``end`` that match the filter, or all without one.

    The position of each message is its offset. Neighbours usually differ only in their bodies, which a comparison of
    bytes detects. A message that cannot be decoded is skipped and reported to ``on_unreadable``, if that is given.

    :raises UnreadableRecord: if a message cannot be decoded, and ``on_unreadable`` is not given.
    :raises StorageError: if the data are incomplete, or a newer gateway wrote them.
    """
    envelopes = Envelopes(data, reader)
    envelope = b""
    header = None
    for head in chunk_heads(data):
        at = head.position + HEAD_SIZE
        stop = head.position + head.size
        for position in range(head.first, min(head.end, end)):
            try:
                timestamp_ms, filter_size, content_size = _unpack_entry(data, at)
            except struct.error:
                raise incomplete(head) from None
            content = at + ENTRY_SIZE + filter_size
            at = content + content_size
            if at > stop:
                raise incomplete(head)
            if position < offset or (wanted is not None and not wanted.takes(data[content - filter_size : content])):
                continue
            if header is None or not data.startswith(envelope, content):
                try:
                    envelope, header = envelopes.read(content)
                except UnreadableRecord as error:
                    if on_unreadable is None:
                        raise
                    on_unreadable(error)
                    header = None
                    continue
                exchange, routing_key = envelopes.exchange, envelopes.routing_key
            message = Message(exchange, routing_key, header, data[content + len(envelope) : at])
            yield QueuedMessage(message, position, timestamp_ms, True)
