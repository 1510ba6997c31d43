"""Changes from stored contents, for another store: the headers stay bytes, and are not decoded."""

from functools import lru_cache

from gateway.kernel.journal.changes import Appended, Stored
from gateway.kernel.messages.contents import decode_content
from gateway.kernel.messages.message import Header, HeaderEdit, Message, Properties
from gateway.kernel.messages.stored_message import StoredMessage


class StoredFormat:
    """The name of a header format, for headers that are stored again and never read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def header(self, raw: bytes) -> Header:
        """Return a header with these bytes."""
        return Header(self, raw)

    def properties(self, raw: bytes) -> Properties:
        """Not available."""
        raise NotImplementedError("the header of a stored content is not read")

    def edited(self, raw: bytes, edit: HeaderEdit) -> bytes:
        """Not available."""
        raise NotImplementedError("the header of a stored content is not edited")

    def stamped(self, raw: bytes, timestamp_s: int) -> bytes:
        """Not available."""
        raise NotImplementedError("the header of a stored content is not edited")


@lru_cache(maxsize=16)
def _format(name: str) -> StoredFormat:
    return StoredFormat(name)


def message_of(content: StoredMessage) -> Message:
    """Return a message that a store writes as ``content``."""
    header = _format(content.header_format).header(content.header)
    return Message(content.exchange, content.routing_key, header, content.body)


def stored(message_id: int, content: StoredMessage) -> Stored:
    """Return the change that stores a content."""
    message = message_of(content)
    message.id = message_id
    return Stored(message)


def appended(stream_id: int, offset: int, timestamp_ms: int, filter_value: bytes, content: bytes) -> Appended:
    """Return the change that appends a message to a stream. :raises UnreadableRecord: if the content is damaged."""
    return Appended(stream_id, offset, timestamp_ms, filter_value, message_of(decode_content(content)))
