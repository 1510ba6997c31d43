"""Records of progress: offsets of stream consumers, batches of producers, numbers of the node."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity


@dataclass(frozen=True, slots=True)
class StreamOffsetRecord(Entity):
    """The stored offset of a named stream consumer: ``offset`` is the last message that it processed."""

    kind: ClassVar[str] = "stream_offset"
    key_width: ClassVar[int] = 3
    vhost: str
    queue: str
    consumer: str
    offset: int


@dataclass(frozen=True, slots=True)
class ProducerRecord(Entity):
    """The last batch that a producer published for one of its queries, and its wall time."""

    kind: ClassVar[str] = "producer"
    key_width: ClassVar[int] = 3
    vhost: str
    producer: str
    query: str
    batch: int
    published_at_ms: int


@dataclass(frozen=True, slots=True)
class SeenRecord(Entity):
    """A key in the deduplication window of a queue or exchange (``place``), as a digest.

    ``number`` orders the keys of one window. ``until_ms`` is wall time, 0 for no time limit.
    """

    kind: ClassVar[str] = "seen"
    key_width: ClassVar[int] = 4
    vhost: str
    place: str
    name: str
    digest: bytes
    number: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class CleanStopRecord(Entity):
    """Marks that the store was closed cleanly: unsettled messages were requeued and their deliveries counted.

    Except messages up to the position ``doubtful_up_to``, which existed when the node was last killed.
    """

    kind: ClassVar[str] = "clean_stop"
    node: str
    doubtful_up_to: int
