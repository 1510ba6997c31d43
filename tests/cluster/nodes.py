"""Nodes of one cluster in one process, each with a clock and an engine of its own that can fail."""

from collections.abc import Callable
from itertools import count

from gateway.cluster.errors import ClusterMismatch, Deposed, Unanswered
from gateway.cluster.leadership import Contact, Leadership, Member, Members
from gateway.cluster.log_replay import LogRecord, replay
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import UNCLAIMED, AppendAnswer, AppendOutcome, Claim, Position
from gateway.testing.clock import FakeClock
from gateway_memory.cluster import MemoryMetadata, MemoryQueueLogs
from tests.cluster.faulty_ports import Faults, FaultyLogs, FaultyMetadata, NodeClock, start

#: The time between two appends of a leader, in seconds.
APPEND_S = 0.5


class RecordingLogs(MemoryQueueLogs):
    """Logs that note a batch of an old epoch that is stored after one of a newer epoch."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.old_after_new: list[Position] = []
        self._last = (Position(0), UNCLAIMED)

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        def note(answer: AppendAnswer) -> None:
            if answer.outcome is AppendOutcome.STORED and answer.position > self._last[0]:
                if claim.epoch < self._last[1]:
                    self.old_after_new.append(answer.position)
                self._last = (answer.position, claim.epoch)
            answered(answer)

        super().append(claim, number, data, note)


class Cluster:
    """An engine in memory, and its nodes by name."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.metadata = MemoryMetadata(self.clock)
        self.logs = RecordingLogs(self.clock)
        self.nodes: dict[str, Node] = {}
        self.instances = count(1)
        #: The processes that their successors know to have ended.
        self.ended: set[str] = set()
        #: The records whose appends were reported as stored, in this order.
        self.stored: list[bytes] = []

    def node(self, name: str) -> "Node":
        """Start a node, at the place of a former one with this name."""
        node = self.nodes[name] = Node(self, name)
        node.join()
        return node

    def advance(self, seconds: float) -> None:
        """Let time pass, and check at each step that at most one node leads."""
        steps = round(seconds / 0.1)
        for _ in range(steps):
            self.clock.advance(0.1)
            self.check()

    def check(self) -> None:
        leaders = [node.name for node in self.nodes.values() if node.leads]
        assert len(leaders) <= 1, f"{leaders} lead at the same time"

        assert not self.logs.old_after_new, "the log has a batch of an old epoch after one of a newer epoch"

    def leader(self) -> "Node":
        """Return the one leader."""
        (leader,) = [node for node in self.nodes.values() if node.leads]
        return leader


class Node:
    """A node whose broker is a log that it appends to while it leads."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.instance = f"i{next(cluster.instances)}"
        self.clock = NodeClock(cluster.clock)
        self.faults = Faults(cluster.clock, self.clock)
        self.reports: list[str] = []
        self.refusals: list[ClusterMismatch] = []
        self.read: list[LogRecord] = []
        self.writer: LogWriter | None = None
        self._payloads: dict[int, bytes] = {}
        metadata, self.logs = FaultyMetadata(cluster.metadata, self.faults), FaultyLogs(cluster.logs, self.faults)
        own = Member(
            name,
            self.instance,
            (f"{name}.example", 7000),
            {"amqp": (f"{name}.example", 5672)},
            "1.0",
            process=self.instance,
        )
        self.contact = Contact(self)
        self.members = Members(
            metadata,
            self.clock,
            start,
            own,
            self.contact,
            self.refusals.append,
            has_ended=lambda process: process in cluster.ended,
        )
        self.leadership = Leadership(metadata, self.logs, self.clock, start, self.members, self.contact, self)

    def join(self) -> None:
        self.members.join()
        self.leadership.start()

    @property
    def leads(self) -> bool:
        """Whether the node would act as the leader now."""
        return not self.clock.is_dead and not self.clock.is_paused and self.leadership.check()

    @property
    def is_up(self) -> bool:
        return not self.clock.is_dead

    def kill(self) -> None:
        """End the process."""
        self.clock.is_dead = True

    def pause(self) -> None:
        """Stop the process, as SIGSTOP does."""
        self.clock.is_paused = True

    def resume(self) -> None:
        """Let the process go on, as SIGCONT does."""
        self.clock.resume()

    # ---- What the node is told -----------------------------------------------------------------------------------

    def on_elected(self, claim: Claim) -> None:
        self.reports.append(f"elected {claim.epoch}")
        start(self._serve(claim))

    def on_lost(self, reason: str) -> None:
        self.reports.append(f"lost: {reason}")
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def on_reachable(self) -> None:
        self.reports.append("reachable")

    def on_unreachable(self, reason: str) -> None:
        self.reports.append(f"unreachable: {reason}")

    # ---- The broker of the node ----------------------------------------------------------------------------------

    async def _serve(self, claim: Claim) -> None:
        read: list[LogRecord] = []
        try:
            end = await replay(self.logs, claim, read.append)
        except (Unanswered, Deposed):
            return
        if self.leadership.claim == claim:
            self.read = read
            payloads = {record.payload for record in read}
            missing = [payload for payload in self.cluster.stored if payload not in payloads]
            assert not missing, f"{self.name} does not know {missing}"
            self._payloads.clear()  # those of an earlier election, which were not reported as stored
            self.writer = LogWriter(self.logs, self.clock, claim, end, self)
            self._append()

    def _append(self) -> None:
        writer = self.writer
        if writer is not None and not writer.is_closed and self.leadership.check():
            payload = f"{self.name} {writer.claim.epoch} {self.clock.monotonic_s()}".encode()
            self._payloads[writer.append(payload)] = payload
            self.clock.call_later(APPEND_S, self._append)

    def on_durable(self, index: int) -> None:
        for each in sorted(at for at in self._payloads if at <= index):
            self.cluster.stored.append(self._payloads.pop(each))

    def on_deposed(self, reason: str) -> None:
        self.reports.append(f"deposed: {reason}")

    def on_stalled(self, reason: str) -> None:
        pass

    def on_resumed(self) -> None:
        pass


def takes_over(cluster: Cluster, seconds: float) -> float:
    """Let time pass until a node leads; return how long it took."""
    begin_s = cluster.clock.monotonic_s()
    while not any(node.leads for node in cluster.nodes.values()):
        assert cluster.clock.monotonic_s() - begin_s < seconds, "no node leads"
        cluster.advance(0.1)
    return cluster.clock.monotonic_s() - begin_s
