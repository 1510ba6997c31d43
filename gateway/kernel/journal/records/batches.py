"""Records of the batches that are published in slices: what was committed, and how far it is published."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity


@dataclass(frozen=True, slots=True)
class BatchRecord(Entity):
    """A committed batch of staged rows. From this record on it will be published, whatever is restarted.

    ``name`` identifies the batch in its virtual host, ``producer``, ``query`` and ``batch`` are its identity (a batch
    of -1: it has none). ``attempts`` is a JSON list of ``[name, parts, rows]`` in the order of publishing, with
    ``rows`` rows in all, which ``user`` has staged. ``exchange`` and ``routing_key`` are defaults of rows; without a
    default exchange each row names its own. ``dead_letter_exchange`` gets unroutable messages, empty for none.
    """

    kind: ClassVar[str] = "batch"
    key_width: ClassVar[int] = 2
    vhost: str
    name: str
    user: str
    producer: str
    query: str
    batch: int
    attempts: bytes
    rows: int
    exchange: str | None
    routing_key: str
    may_drop: bool
    dead_letter_exchange: str
    committed_at_ms: int


@dataclass(frozen=True, slots=True)
class BatchPositionRecord(Entity):
    """The position in a batch that is being published, put in the step of the store that has the messages before it.

    ``part`` counts the parts of all attempts, ``row`` the rows of that part. ``published``, ``dropped`` and ``refused``
    count the rows before it: those that were enqueued, that were unroutable, that full queues rejected.
    """

    kind: ClassVar[str] = "batch_position"
    key_width: ClassVar[int] = 2
    vhost: str
    name: str
    part: int = 0
    row: int = 0
    published: int = 0
    dropped: int = 0
    refused: int = 0
