"""The state of a cluster of several nodes, as its leader shows it to operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

#: The figures in the record of a follower that keeps a copy.
COPY_BEHIND_BATCHES: Final = "copy_behind_batches"
COPY_BEHIND_MS: Final = "copy_behind_ms"

#: The figures of the reads of streams that a node answered from its copies.
COPY_READS: Final = "copy_reads"
COPY_ROWS: Final = "copy_rows"

#: The figures of a node's clients while it followed.
CLIENTS_RESUMED: Final = "clients_resumed"
CLIENTS_NOT_RESUMED: Final = "clients_not_resumed"

#: A leader that renews its lease has more than this left, in seconds.
LEAST_LEASE_S: Final = 1.5


@dataclass(frozen=True, slots=True)
class CopyState:
    """The delay of a follower's copy: the batches of the log that it lacks, and the age of its state."""

    behind_batches: int
    behind_seconds: float


@dataclass(frozen=True, slots=True)
class MemberState:
    """A node. ``role`` is empty for one that is not alive, ``figures`` are those of its last record.

    ``host`` is the address at which the other nodes reach it; ``addresses`` are those of its listeners.
    ``is_drained`` says that it is in maintenance, ``is_eligible`` that it stands for election.
    """

    name: str
    is_alive: bool
    is_this_node: bool
    role: str
    version: str
    host: str
    addresses: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    figures: Mapping[str, int] = field(default_factory=dict)
    is_drained: bool = False
    is_eligible: bool = True

    @property
    def clients_resumed(self) -> int:
        """The number of its clients that went on with another leader, since its process began."""
        return self.figures.get(CLIENTS_RESUMED, 0)

    @property
    def clients_not_resumed(self) -> int:
        """The number of its clients whose connections were ended because that was not possible."""
        return self.figures.get(CLIENTS_NOT_RESUMED, 0)

    @property
    def copy_reads(self) -> int:
        """The number of reads of streams that it has answered from its copies, since its process began."""
        return self.figures.get(COPY_READS, 0)

    @property
    def copy_rows(self) -> int:
        """The number of messages in those answers."""
        return self.figures.get(COPY_ROWS, 0)

    @property
    def copy(self) -> CopyState | None:
        """The copy that this member keeps while it follows, as of its last record; ``None`` without one."""
        batches, milliseconds = self.figures.get(COPY_BEHIND_BATCHES), self.figures.get(COPY_BEHIND_MS)
        if not self.is_alive or batches is None or milliseconds is None:
            return None
        return CopyState(batches, milliseconds / 1000)


@dataclass(frozen=True, slots=True)
class LogState:
    """The log that holds everything: appends of the last minute, and its steps since the last checkpoint.

    ``leader_moves`` counts how often another leader of it was asked for, because all appends were slow.
    """

    appends: int = 0
    append_p50_ms: float = 0.0
    append_p99_ms: float = 0.0
    append_last_ms: float = 0.0
    records: int = 0
    bytes: int = 0
    checkpoint_bytes: int = 0
    leader_moves: int = 0


@dataclass(frozen=True, slots=True)
class RebuildState:
    """The building of this leader's copy from the log, after it was elected."""

    seconds: float = 0.0
    records: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class CellState:
    """A cell: its leader, empty while it has none, the epoch, and how many virtual hosts it has."""

    number: int
    leader: str
    epoch: int
    vhosts: int


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The cluster as this node sees it.

    ``engine_fault`` is the reason why the engine does not answer, ``None`` while it does. ``lease_s`` is the time after
    which this node stops leading unless it renews its lease. ``unchecked_servers`` are those of the engine that
    have not answered since this node started. ``cells`` are all of them if there are several; ``leader``, ``epoch``,
    ``lease_s``, ``log`` and ``rebuild`` are those of the cell of the node that answers.
    """

    name: str
    node: str
    leader: str
    epoch: int
    members: tuple[MemberState, ...]
    engine_fault: str | None
    lease_s: float
    log: LogState = LogState()
    rebuild: RebuildState = RebuildState()
    unchecked_servers: tuple[str, ...] = ()
    cells: tuple[CellState, ...] = ()

    @property
    def leads(self) -> bool:
        """Whether this node is the leader."""
        return self.leader == self.node

    @property
    def doubt(self) -> str | None:
        """The reason why this node may soon stop leading, or cannot confirm anything; ``None`` if there is none."""
        if self.engine_fault is not None:
            return f"the engine of the cluster does not answer: {self.engine_fault}"
        if not self.leads:
            return "this node does not lead the cluster"
        if self.lease_s < LEAST_LEASE_S:
            return f"the lease ends in {max(self.lease_s, 0):.1f} s, because the engine does not renew it"
        return None

    @property
    def is_this_node_drained(self) -> bool:
        """Whether this node is in maintenance, and about to hand over."""
        return any(member.is_this_node and member.is_drained for member in self.members)

    @property
    def alive(self) -> list[str]:
        """The names of the members that are alive."""
        return [member.name for member in self.members if member.is_alive]
