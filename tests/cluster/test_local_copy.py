"""The copy of a node in its directory: the one that grew is finished at a claim, or another one is built."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.cluster.batches import LogBatch, RecordPiece, encode_batch
from gateway.cluster.errors import Deposed
from gateway.cluster.leadership import LEADER_LOG
from gateway.cluster.queue_log import UNCLAIMED, Claim, Epoch
from gateway.cluster.replication.log_records import CHECKPOINT_BEGIN, CHECKPOINT_END, CHECKPOINT_PIECE, STEP
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Put
from gateway.net.clock import ReactorClock
from gateway.node.cluster.local_copy import BuiltCopy, LocalCopy
from gateway.node.data_directory import COPY
from gateway.testing.store_session import vhost_record
from gateway_memory.cluster import MemoryQueueLogs
from tests.cluster.scripted_logs import run
from tests.jetstream.event_loop import EventLoop


class Node:
    """A log in memory, to which a leader appends, and the copy of a node in a directory."""

    def __init__(self, data: Path, keeps_standby: bool) -> None:
        self.data = data
        self.loop = EventLoop()
        clock = ReactorClock(self.loop.reactor, lambda: None)
        self.logs = MemoryQueueLogs(clock)
        self.claim: Claim = run(self.logs.claim(LEADER_LOG, "leader", Epoch(UNCLAIMED)))
        self.number = 0
        self.copy = LocalCopy(data, self.loop.reactor, clock, self.logs, keeps_standby)

    def append(self, *payloads: bytes, floor: int = 1) -> None:
        for payload in payloads:
            self.number += 1
            batch = LogBatch(LEADER_LOG, self.claim.epoch, self.number, self.number, floor, [RecordPiece(payload)])
            self.logs.append(self.claim, self.number, encode_batch(batch), lambda answer: None)

    def catch_up(self) -> None:
        self.loop.until(lambda: self.copy.figures() == {"copy_behind_batches": 0, "copy_behind_ms": 0})

    def build(self, check: Callable[[], None] = lambda: None) -> BuiltCopy:
        claim = run(self.logs.claim(LEADER_LOG, "node", self.claim.epoch))
        self.claim = claim
        return self.loop.run(self.copy.build(claim, check, lambda progress: None))

    def built_vhosts(self) -> list[str]:
        """Return the virtual hosts in a copy that is built now, and close it."""
        return vhosts_in(self.build())


def vhosts_in(built: BuiltCopy) -> list[str]:
    """Return the virtual hosts in a copy, and close it."""
    names = [change.entity.name for change in built.store.recover() if isinstance(change, Put)]
    built.store.close()
    return sorted(names)


@pytest.fixture
def new_node(tmp_path: Path) -> Iterator[Callable[[bool], Node]]:
    nodes: list[Node] = []

    def new(keeps_standby: bool) -> Node:
        nodes.append(Node(tmp_path, keeps_standby))
        return nodes[-1]

    yield new
    for node in nodes:
        node.copy.close()
        node.loop.close()


def put(name: str, kind: bytes = STEP) -> bytes:
    return kind + StepEncoder().encode([Put(vhost_record(name))])


def test_a_copy_that_grew_needs_only_the_rest(new_node: Callable[[bool], Node]) -> None:
    node = new_node(True)
    node.append(put("a"), put("b"))
    node.copy.follow()
    node.catch_up()
    node.append(put("c"))
    built = node.build()
    assert built.rebuilt.records <= 1
    assert vhosts_in(built) == ["a", "b", "c"]


def test_without_a_standby_it_is_built_at_the_claim(new_node: Callable[[bool], Node]) -> None:
    node = new_node(False)
    node.copy.follow()
    node.append(put("a"), put("b"))
    assert not (node.data / COPY).exists()
    assert node.copy.figures() == {}
    built = node.build()
    assert built.rebuilt.records == 2
    assert vhosts_in(built) == ["a", "b"]


def test_a_copy_that_lacks_what_was_removed_is_replaced_at_the_claim(new_node: Callable[[bool], Node]) -> None:
    node = new_node(True)
    node.append(put("removed later"))
    node.copy.follow()
    node.catch_up()
    node.copy._standby._stop_following()
    node.append(put("lost"))
    node.append(CHECKPOINT_BEGIN, put("a", CHECKPOINT_PIECE), CHECKPOINT_END, put("b"), floor=3)
    assert node.built_vhosts() == ["a", "b"]


def test_after_a_deposed_leader_the_next_copy_has_nothing_of_it(new_node: Callable[[bool], Node]) -> None:
    node = new_node(True)
    node.append(put("a"))
    node.copy.follow()
    store = node.build().store
    list(store.recover())
    store.append([Put(vhost_record("refused by the log"))])
    store.close()
    node.copy.follow()
    node.catch_up()
    assert node.built_vhosts() == ["a"]


def test_a_build_that_was_refused_leaves_the_directory_free(new_node: Callable[[bool], Node]) -> None:
    node = new_node(True)
    node.append(put("a"))

    def refuse() -> None:
        raise Deposed("the leadership was lost")

    with pytest.raises(Deposed):
        node.build(refuse)
    assert node.built_vhosts() == ["a"]


def test_a_directory_that_cannot_be_used_is_an_error_at_the_claim_alone(new_node: Callable[[bool], Node]) -> None:
    node = new_node(True)
    (node.data / COPY).write_text("not a directory")
    node.copy.follow()
    assert node.copy.figures() == {}
    with pytest.raises(StorageError):
        node.build()
    (node.data / COPY).unlink()
    assert node.built_vhosts() == []
