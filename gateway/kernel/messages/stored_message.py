"""The content of a message as the store gives it back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message's content as the store gives it back."""

    exchange: str
    routing_key: str
    header_format: str
    header: bytes
    body: bytes
