"""Requests too large for one turn run in slices, are one step of the store, and are answered at their end."""

import pytest
from pamqp import commands

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue_like import QueueLike
from tests.clocks import TickingClock
from tests.garbage import left_by
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish
from tests.step_store import StepStore

COUNT = 3000


@pytest.fixture
def peer(gateway: Gateway) -> Peer:
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="q", durable=True))
    assert len(peer.receive()) == 1
    return peer


def publish_in_transaction(peer: Peer, count: int) -> None:
    peer.send(commands.Tx.Select())
    for _ in range(count):
        peer.send(publish("", "q", b"m", delivery_mode=2))
    assert peer.receive() == ["Tx.SelectOk()"]


def test_a_large_commit_is_one_step_of_the_store_and_is_answered_at_its_end(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    publish_in_transaction(peer, COUNT)
    queue = gateway.vhost.queue("q")
    store.sizes.clear()
    peer.send(commands.Tx.Commit())
    assert peer.receive() == []
    assert 0 < len(queue) < COUNT
    assert store.sizes == []
    clock.advance(0)
    assert peer.receive() == ["Tx.CommitOk()"]
    assert len(queue) == COUNT
    assert [size for size in store.sizes if size > 1] == [2 * COUNT]


def test_streams_in_a_large_commit_get_their_messages_in_its_last_turn(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    stream, queue = declare_stream(gateway), gateway.vhost.queue("q")
    publish_in_transaction(peer, 100)
    for number in range(COUNT):
        peer.send(
            publish("amq.fanout", "", b"%d" % number, delivery_mode=2),
            publish("", "q", b"%d" % number, delivery_mode=2),
        )
    peer.receive()
    store.sizes.clear()
    peer.send(commands.Tx.Commit())
    assert (peer.receive(), len(stream), store.sizes) == ([], 0, [])
    assert 0 < len(queue) < COUNT
    clock.advance(0)
    assert peer.receive() == ["Tx.CommitOk()"]
    assert (len(stream), len(queue)) == (COUNT, 100 + 2 * COUNT)
    assert [size for size in store.sizes if size > 1] == [2 * 100 + 5 * COUNT]
    clock.is_ticking = False
    peer.send(commands.Basic.Consume(queue="q", no_ack=True))
    bodies = [received.body for received in peer.receive_frames() if received.body]
    assert bodies[100:] == [b"%d" % (number // 2) for number in range(2 * COUNT)]


def declare_stream(gateway: Gateway) -> QueueLike:
    """Declare a stream, and bind it and ``q`` to ``amq.fanout``."""
    stream = gateway.vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    for queue in (stream, gateway.vhost.queue("q")):
        gateway.vhost.bind(gateway.vhost.exchange("amq.fanout"), queue, "")
    return stream


def test_an_unroutable_message_of_a_large_commit_is_returned_although_its_exchange_is_archived(
    gateway: Gateway, peer: Peer, clock: TickingClock
) -> None:
    gateway.broker.put_policy(PolicyRecord("/", "keep", False, "^amq.direct$", "exchanges", 0, {"archive": True}))
    publish_in_transaction(peer, COUNT)
    peer.send(publish("amq.direct", "nowhere", b"m", mandatory=True), commands.Tx.Commit())
    assert peer.receive() == []
    clock.advance(0)
    assert [line.split("(")[0] for line in peer.receive()] == ["Basic.Return", "Tx.CommitOk"]


def test_frames_after_a_large_commit_wait_for_it(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    publish_in_transaction(peer, COUNT)
    peer.send(commands.Tx.Commit(), commands.Queue.Declare(queue="q", passive=True))
    peer.send(commands.Queue.Declare(queue="other"))
    assert peer.receive() == []
    clock.advance(0)
    received = peer.receive()
    assert received[0] == "Tx.CommitOk()"
    assert [line.split("(")[0] for line in received[1:]] == ["Queue.DeclareOk"] * 2
    assert f"message_count={COUNT}" in received[1]


def test_a_crash_during_a_large_commit_discards_all_of_it(gateway: Gateway, peer: Peer, store: StepStore) -> None:
    publish_in_transaction(peer, COUNT)
    peer.send(commands.Tx.Commit())
    assert len(gateway.vhost.queue("q")) > 0
    gateway.settle()
    assert len(Gateway(store=store.reopened()).vhost.queue("q")) == 0


def test_messages_consumed_while_their_step_is_open_are_not_restored(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    publish_in_transaction(peer, COUNT)
    peer.send(commands.Tx.Commit())
    other = gateway.connect()
    for _ in range(10):
        other.send(commands.Basic.Get(queue="q", no_ack=True))
    assert len([line for line in other.receive() if "GetOk" in line]) == 10
    assert len(Gateway(store=store.reopened()).vhost.queue("q")) == 0
    clock.advance(0)
    assert peer.receive() == ["Tx.CommitOk()"]
    assert len(Gateway(store=store.reopened()).vhost.queue("q")) == COUNT - 10


def test_a_commit_completes_when_its_client_disconnects(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    publish_in_transaction(peer, COUNT)
    peer.send(commands.Tx.Commit())
    peer.lose()
    clock.advance(0)
    assert len(gateway.vhost.queue("q")) == COUNT


def test_a_long_queue_is_purged_in_slices_and_the_answer_waits_for_the_store(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    for _ in range(COUNT):
        peer.send(publish("", "q", b"m", delivery_mode=2))
    assert peer.receive() == []
    peer.send(commands.Queue.Purge(queue="q"))
    assert peer.receive() == []
    assert len(gateway.vhost.queue("q")) == 0
    clock.advance(0)
    assert peer.receive() == [f"Queue.PurgeOk(message_count={COUNT})"]
    assert not store.held_ids


def test_messages_requeued_in_slices_keep_their_order(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    clock.is_ticking = False
    for number in range(COUNT):
        peer.send(publish("", "q", b"%d" % number))
    first, second = gateway.connect(), gateway.connect()
    first.send(commands.Basic.Consume(queue="q"))
    assert len(first.receive()) == COUNT + 1
    second.send(commands.Basic.Consume(queue="q"))
    assert len(second.receive()) == 1
    clock.is_ticking = True
    first.lose()
    assert second.receive() == []
    peer.send(publish("", "q", b"late"))
    clock.advance(0)
    clock.is_ticking = False
    bodies = [received.body for received in second.receive_frames()]
    assert bodies == [*(b"%d" % number for number in range(COUNT)), b"late"]


def test_a_get_skips_many_expired_messages(gateway: Gateway, peer: Peer, clock: TickingClock) -> None:
    for _ in range(COUNT):
        peer.send(publish("", "q", b"old", expiration="1000"))
    peer.send(publish("", "q", b"new"))
    queue = gateway.vhost.queue("q")
    gateway.settle()
    clock.pass_without_calls(2)
    peer.send(commands.Basic.Get(queue="q", no_ack=True), commands.Basic.Get(queue="q", no_ack=True))
    assert peer.receive() == []
    assert len(queue) > 1, "all were discarded in one turn"
    clock.advance(0)
    first, second = peer.receive()
    assert "new" in first
    assert second.startswith("Basic.GetEmpty")


def bind_many_times(gateway: Gateway) -> None:
    vhost = gateway.vhost
    exchange, queue = vhost.declare_exchange("x", "direct", is_durable=True), vhost.queue("q")
    for number in range(COUNT):
        vhost.bind(exchange, queue, str(number))


def test_the_deletion_of_a_queue_with_many_bindings_is_answered_at_its_end(
    gateway: Gateway, peer: Peer, store: StepStore, clock: TickingClock
) -> None:
    bind_many_times(gateway)
    gateway.settle()
    peer.send(commands.Queue.Delete(queue="q"), commands.Queue.Declare(queue="q"))
    assert peer.receive() == []
    assert gateway.vhost.bindings.count > 0
    clock.advance(0)
    gateway.settle()
    assert [line.split("(")[0] for line in peer.receive()] == ["Queue.DeleteOk", "Queue.DeclareOk"]
    assert gateway.vhost.bindings.count == 0
    assert not gateway.vhost.queue("q").is_durable
    assert "q" not in Gateway(store=store.reopened()).vhost.queue_by_name


def test_a_declaration_waits_for_the_deletion_of_the_queue_of_that_name(
    gateway: Gateway, peer: Peer, clock: TickingClock
) -> None:
    bind_many_times(gateway)
    other = gateway.connect()
    peer.send(commands.Queue.Delete(queue="q"))
    other.send(commands.Queue.Declare(queue="q", passive=True))
    assert "404 NOT_FOUND - no queue 'q'" in other.receive()[-1]
    other = gateway.connect()
    other.send(commands.Queue.Declare(queue="q"))
    assert other.receive() == []
    clock.advance(0)
    assert other.receive()[-1].startswith("Queue.DeclareOk(queue='q'")
    assert not gateway.vhost.queue("q").is_durable


@pytest.mark.source
@pytest.mark.parametrize("end", ["rollback", "loss of the connection"])
def test_the_messages_of_a_large_dropped_transaction_are_freed_in_slices(
    gateway: Gateway, peer: Peer, clock: TickingClock, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_amqp.publishing._FREED_AT_ONCE", COUNT - 1)
    publish_in_transaction(peer, COUNT)
    if end == "rollback":
        peer.send(commands.Tx.Rollback())
        assert peer.receive() == ["Tx.RollbackOk()"]
    else:
        peer.lose()
    assert len(clock.background) == 1
    slices: list[str] = []
    clock.background.on_slice = lambda job, seconds: slices.append(job)
    clock.advance(0)
    assert slices == ["freeing"] * len(slices)
    assert len(slices) > 1
    assert not len(clock.background)
    assert len(gateway.vhost.queue("q")) == 0


def test_a_large_commit_with_messages_for_a_stream_leaves_no_messages_in_memory(
    gateway: Gateway, clock: TickingClock
) -> None:
    stream = gateway.vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    gateway.vhost.declare_queue("q", is_durable=True)
    peer = gateway.connect()

    def commit() -> None:
        publish_in_transaction(peer, COUNT)
        peer.send(*[publish("", "s", b"for the stream", delivery_mode=2) for _ in range(5)], commands.Tx.Commit())
        clock.advance(0)
        gateway.settle()
        assert "Tx.CommitOk()" in peer.receive()

    commit()
    assert [each for each in left_by(commit) if isinstance(each, Message)] == []
    assert len(stream) == 10
