"""Records of the messages that exchanges keep for destinations that are bound later."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity


@dataclass(frozen=True, slots=True)
class KeptRecord(Entity):
    """A message that an exchange keeps under a name. ``number`` orders the messages of one exchange.

    ``source`` is the exchange to which it was published.
    """

    kind: ClassVar[str] = "kept"
    key_width: ClassVar[int] = 3
    vhost: str
    exchange: str
    name: str
    number: int
    source: str
    routing_key: str
    header_format: str
    header: bytes
    body: bytes
