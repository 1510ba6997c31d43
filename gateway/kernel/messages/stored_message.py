"""The content of a message as read from the store."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message's content as read from the store."""

    exchange: str
    routing_key: str
    header_format: str
    header: bytes
    body: bytes
