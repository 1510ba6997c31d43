"""Scenarios of kernel and store: durability of confirmed messages, shared contents, atomic transactions."""

from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient, header_of


def test_confirmed_messages_survive_a_crash_once_and_in_order() -> None:
    broker = MemoryBroker(resident_messages=8)
    broker.vhost.declare_queue("orders", is_durable=True)
    broker.commit()
    confirmed = [0]
    confirms = Confirms(broker.kernel.journal, lambda number, is_multiple, is_accepted: confirmed.append(number))

    for number in range(1, 101):
        assert broker.publish("orders", b"%d" % number, is_persistent=True) is Verdict.TAKEN
        confirms.published(is_accepted=True)
        if number % 7 == 0:
            broker.end_turn()
        if number % 35 == 0:
            broker.store.commit()
    assert confirmed == [0, 35, 70]

    consumer = Recipient()
    consumer.consume(broker.crashed().vhost.queue("orders"), prefetch=10)
    while len(consumer.ledger):
        consumer.settle(0, up_to=True)
    assert consumer.bodies == [b"%d" % number for number in range(1, 71)]


def test_a_message_in_many_queues_is_stored_once_and_removed_with_the_last_queue() -> None:
    """R133, R130, also with a restart in between."""
    broker = MemoryBroker()
    names = [f"queue {number}" for number in range(5)]
    for name in names:
        queue = broker.vhost.declare_queue(name, is_durable=True)
        broker.vhost.bind(broker.vhost.exchange("amq.fanout"), queue, "")
    broker.publish("", bytes(100_000), exchange="amq.fanout", is_persistent=True)
    broker.commit()
    assert len(broker.store.held_ids) == 1

    first = Recipient()
    first.consume(broker.vhost.queue(names[0]))
    first.settle(1)
    broker.vhost.queue(names[1]).drops.purge()
    broker.commit()
    assert len(broker.store.held_ids) == 1

    restarted = broker.crashed()
    restarted.vhost.delete_queue(restarted.vhost.queue(names[2]))
    second = Recipient()
    second.consume(restarted.vhost.queue(names[3]))
    second.settle(1, DeliveryOutcome.REJECTED)
    restarted.commit()
    assert len(restarted.store.held_ids) == 1

    last = Recipient()
    last.consume(restarted.vhost.queue(names[4]), settles=False)
    restarted.commit()
    assert [len(body) for body in last.bodies] == [100_000]
    assert restarted.store.held_ids == frozenset()


def test_the_changes_of_one_turn_are_stored_completely_or_not_at_all() -> None:
    """R115, R116: a transaction settles and publishes in one turn."""
    broker = MemoryBroker()
    for name in ("in", "out"):
        broker.vhost.declare_queue(name, is_durable=True)
    broker.publish("in", b"request", is_persistent=True)
    broker.commit()
    worker = Recipient()
    worker.consume(broker.vhost.queue("in"))
    worker.settle(1)
    broker.publish("out", b"answer", is_persistent=True)

    def lengths(after: MemoryBroker) -> tuple[int, int]:
        return len(after.vhost.queue("in")), len(after.vhost.queue("out"))

    broker.end_turn()
    assert lengths(broker.crashed()) == (1, 0)
    broker.store.commit()
    assert lengths(broker.crashed()) == (0, 1)


def test_work_is_distributed_and_redelivered_when_a_consumer_dies() -> None:
    """R148: a work queue with prefetch 1."""
    broker = MemoryBroker()
    tasks = broker.vhost.declare_queue("tasks", is_durable=True)
    for number in range(6):
        broker.publish("tasks", b"%d" % number, is_persistent=True)
    steady, dying = Recipient(), Recipient()
    steady.consume(tasks, prefetch=1)
    dying.consume(tasks, prefetch=1)
    assert (steady.bodies, dying.bodies) == ([b"0"], [b"1"])
    dying.leave()
    while len(steady.ledger):
        steady.settle(steady.received[-1].tag)
    assert steady.bodies == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [received.redelivered for received in steady.received] == [False, True, False, False, False, False]
    broker.commit()
    assert broker.store.held_ids == frozenset()


def test_a_request_is_answered_over_the_reply_queue() -> None:
    """R148: request and reply, over the reply queue that only the default exchange reaches."""
    broker = MemoryBroker()
    requester, server = Recipient(), Recipient()
    server.consume(broker.vhost.declare_queue("requests"))
    place = broker.vhost.reply_queues.open("amq.rabbitmq.reply-to.1")
    requester.consume(place, settles=False)
    broker.publish("requests", b"what is the time?")
    assert broker.publish(place.name, b"late") is Verdict.TAKEN
    assert (server.bodies, requester.bodies) == ([b"what is the time?"], [b"late"])
    broker.vhost.reply_queues.close(place)
    assert broker.publish(place.name, b"too late") is Verdict.UNROUTED


def test_published_messages_reach_the_current_subscribers() -> None:
    """R148, R34: publish and subscribe."""
    broker = MemoryBroker()
    vhost = broker.vhost
    news = vhost.declare_exchange("news", "topic")
    early, late = Recipient(), Recipient()

    def listen(who: Recipient, name: str, pattern: str) -> None:
        queue = vhost.declare_queue(name, is_auto_delete=True, owner=who)
        vhost.bind(news, queue, pattern)
        who.consume(queue, settles=False)

    def tell(key: str) -> None:
        vhost.publish(news, Message("news", key, header_of(), key.encode()))

    tell("sport.tennis")
    listen(early, "early", "sport.*")
    tell("sport.chess")
    listen(late, "late", "#")
    tell("sport.golf")
    vhost.release(early)
    tell("weather")
    assert early.bodies == [b"sport.chess", b"sport.golf"]
    assert early.cancelled_tags == ["consumer-1"]
    assert late.bodies == [b"sport.golf", b"weather"]


def test_disk_use_falls_after_a_backlog_was_consumed() -> None:
    """R130."""
    broker = MemoryBroker(resident_messages=16)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for number in range(500):
        broker.publish("q", bytes(100), is_persistent=number % 3 > 0)
    broker.commit()
    assert len(broker.store.held_ids) > 333
    recipient = Recipient()
    recipient.consume(queue, prefetch=50)
    while len(recipient.ledger):
        recipient.settle(0, up_to=True)
        broker.end_turn()
    assert len(recipient.received) == 500
    assert broker.store.held_ids == frozenset()
