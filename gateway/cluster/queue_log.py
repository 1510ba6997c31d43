"""The port for the log of a queue: appends are fenced by the record of its owner."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NewType, Protocol

from gateway.cluster.gate import Gate

QueueId = NewType("QueueId", int)
"""The number of a queue in the cluster; never used again."""

Epoch = NewType("Epoch", int)
"""The number of a claim: higher than all positions of the log before it."""

Position = NewType("Position", int)
"""Where a batch is in its engine; positions of a log rise, with gaps."""

#: The epoch of a queue that was never claimed.
UNCLAIMED: Final = Epoch(0)

#: Before all batches.
BEGINNING: Final = Position(0)


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a queue by a node."""

    queue: QueueId
    node: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch in a log, as bytes, and where it is."""

    position: Position
    data: bytes


class AppendOutcome(Enum):
    """The outcome of an append."""

    #: It is stored; also if it was stored by an earlier attempt.
    STORED = auto()
    #: Another node has claimed the queue. Nothing follows from it about what is stored.
    DEPOSED = auto()
    #: An earlier append of this log is still in flight: try again soon.
    IN_FLIGHT = auto()
    #: There was no answer: the same batch is sent again, with the same number.
    UNANSWERED = auto()


@dataclass(frozen=True, slots=True)
class AppendAnswer:
    """The answer to an append, with the position if it is stored, and else the reason."""

    outcome: AppendOutcome
    position: Position = Position(0)
    reason: str = ""


class LogFollower(Protocol):
    """Takes the batches of a log as they are stored. The calls are never made from inside ``follow``."""

    def take(self, batch: StoredBatch, behind: int) -> None:
        """Take the next batch, after which at least ``behind`` more exist.

        :raises ClusterError: if it is of no use: nothing more comes then but ``on_ended``.
        """
        ...

    def on_ended(self, reason: str) -> None:
        """Note, once, that nothing more comes: ``take`` raised an error, or a copy does not deliver what it has."""
        ...


class LogFollowing(Protocol):
    """The following of a log, until it is stopped or has ended."""

    def stop(self) -> None:
        """Make no more calls; safe to call twice."""
        ...


class QueueLogs(Protocol):
    """The logs of all queues. All calls are made on one thread.

    Who owns a queue is decided by ``claim`` alone, which compares and sets; ``owner`` is a hint. An append is stored
    only while its epoch is that of the last claim, decided by the engine inside the write. A stored batch survives the
    loss of a minority of the engine.
    """

    @property
    def most_batch_bytes(self) -> int:
        """The size of the largest batch."""
        ...

    async def owner(self, queue: QueueId) -> Claim | None:
        """Return the last claim that this side knows of: a hint, which may be outdated."""
        ...

    async def claim(self, queue: QueueId, node: str, expected: Epoch) -> Claim:
        """Claim a queue whose last epoch is ``expected``. :raises Outdated: if it is another. :raises Unanswered:"""
        ...

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        """Append a batch, once for each number and epoch, and report the outcome later, exactly once.

        A repetition with the same number is stored once within two minutes, and twice at worst.
        """
        ...

    async def last(self, claim: Claim) -> StoredBatch | None:
        """Return the last batch of a log, if possible of another copy than ``read`` reads. :raises Unanswered:"""
        ...

    async def read(
        self,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        after: Position = BEGINNING,
        gate: Gate | None = None,
    ) -> None:
        """Give each batch after a position and before the claim to ``take``, in order.

        It reads up to the record of the claim itself. While ``gate`` is closed, a bounded number of bytes more comes.

        :raises LogGap: if ``take`` does.
        :raises Deposed: if ``take`` does, or if there is a later claim.
        :raises Unanswered: if the engine does not answer in time.
        """
        ...

    async def read_elsewhere(self, claim: Claim) -> None:
        """Make the next ``last`` and ``read`` use other copies than the last ones did."""
        ...

    def follow(
        self, queue: QueueId, follower: LogFollower, after: Position = BEGINNING, gate: Gate | None = None
    ) -> LogFollowing:
        """Give each batch after a position to a follower, in order, and each one that is stored later.

        What was purged is left out. A batch that comes may have been appended under any claim; it is stored by a
        majority. While ``gate`` is closed, a bounded number of bytes more comes. A copy with which a following ended is
        avoided by the next one of the same queue. Lost connections are replaced.
        """
        ...

    def move_leader(self, claim: Claim) -> None:
        """Ask for another copy to lead the log, soon or never, because the one that does is slow."""
        ...

    async def draw_near(self, claim: Claim) -> None:
        """Ask for the copy nearest to this node to lead the log, and wait for a second at most; it may be refused.

        Called before the first append: one that is in flight meanwhile would be answered late.
        """
        ...

    async def fetch(self, queue: QueueId, position: Position) -> bytes | None:
        """Return the batch at a position, ``None`` if it was purged. :raises Unanswered:"""
        ...

    def purge(self, claim: Claim, below: Position) -> None:
        """Remove what is below a position, soon or never: a later purge covers it. Not fenced."""
        ...
