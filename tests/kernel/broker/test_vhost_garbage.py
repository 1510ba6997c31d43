"""Reference cycles left by deleted queues, exchanges and virtual hosts: none.

The garbage collector does not look at objects that have lived for a while (``gateway.node.garbage_collector``).
"""

from collections import Counter
from collections.abc import Callable

import pytest

from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.sessions.session import Session
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Recipient, header_of
from tests.garbage import left_by

QUEUES: dict[str, Arguments] = {
    "classic": {},
    "with a time to live": {"x-message-ttl": 60_000, "x-expires": 600_000},
    "with dead letters": {"x-dead-letter-exchange": "amq.fanout", "x-max-length": 2},
    "with priorities": {"x-max-priority": 5},
    "with a single active consumer": {"x-single-active-consumer": True},
    "with deduplication": {"x-message-deduplication": True},
    "with delays": {"x-delayed-delivery": True},
    "with retries": {"x-retry-delays": [1000, 2000]},
    "quorum": {"x-queue-type": "quorum", "x-delivery-limit": 3},
    "at least once": {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "nowhere",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    },
    "stream": {"x-queue-type": "stream"},
    "archived": {"x-archive": True},
}

INTERCEPTED: dict[str, Arguments] = {
    "x-delayed-message": {"x-delayed-type": "topic"},
    "x-message-deduplication": {"x-cache-size": 10},
    "x-recent-history": {"x-message-deduplication": True},
    "x-lvc": {},
    "x-consistent-hash": {},
}


def garbage_of(act: Callable[[], None]) -> list[object]:
    """Return the garbage of an action done a second time; objects created once and kept do not count."""
    act()
    return left_by(act)


def classes(garbage: list[object]) -> Counter[str]:
    return Counter(type(each).__qualname__ for each in garbage if type(each).__module__.startswith("gateway"))


def settle(broker: MemoryBroker) -> None:
    for _ in range(3):
        broker.advance(1)
        broker.commit()


def use_queue(broker: MemoryBroker, vhost: VirtualHost, name: str, arguments: Arguments) -> None:
    """Declare a queue, bind it, publish to it, and let one consumer settle some messages and leave."""
    queue = vhost.declare_queue(name, is_durable=True, arguments=dict(arguments))
    topics = vhost.exchange("amq.topic")
    vhost.bind(topics, queue, f"{name}.#")
    for number in range(5):
        delay_ms = (1000, 100_000)[number % 2]  # some are still delayed when the queue is deleted
        header = header_of(is_persistent=True, headers={"x-deduplication-header": str(number), "x-delay": delay_ms})
        vhost.publish(topics, Message("amq.topic", f"{name}.{number}", header, b"body"))
    broker.commit()
    worker = Worker()
    worker.consume(queue, prefetch=2)
    if worker.received:
        worker.settle(worker.received[0].tag, DeliveryOutcome.REJECTED)
    settle(broker)
    worker.leave()


class Worker(Recipient):
    """A recipient that clears its received messages when it leaves; they refer to it."""

    def leave(self) -> None:
        super().leave()
        self.received.clear()
        self.log.clear()


def use_exchanges(vhost: VirtualHost, number: int) -> None:
    """Declare exchanges of the built-in types, each bound to the previous one."""
    earlier = vhost.exchange("amq.topic")
    for type in ("direct", "topic", "headers", "fanout"):
        arguments = {"alternate-exchange": "amq.fanout"}
        exchange = vhost.declare_exchange(f"{type}-{number}", type, is_durable=True, arguments=arguments)
        vhost.bind(earlier, exchange, "key")
        earlier = exchange
    for type, asked in INTERCEPTED.items():
        exchange = vhost.declare_exchange(f"{type}-{number}", type, is_durable=True, arguments=asked)
        header = header_of(is_persistent=True, headers={"x-deduplication-header": "1", "x-delay": 100_000})
        vhost.publish(exchange, Message(exchange.name, "key", header, b"body"))


class Holder:
    """The connection of a session."""

    def displaced(self) -> None:
        raise AssertionError("no other connection takes the session")

    force_close = displaced


def use_session(broker: MemoryBroker, vhost: VirtualHost, client_id: str) -> None:
    """Create an MQTT session with subscriptions, a waiting message, a retained message and a will."""
    session, _ = vhost.sessions.open(client_id, False, 600, Holder())
    assert isinstance(session, Session)
    topics = vhost.exchange("amq.topic")
    for filter, group in (("a.*", ""), ("b.#", "group")):
        record = SubscriptionRecord(vhost.name, client_id, filter, group, filter, 1, 0, False, False)
        session.subscribe(topics, record)
        if group:
            vhost.sessions.groups.joined(session, record)
    vhost.publish(topics, Message("amq.topic", "a.b", header_of(is_persistent=True), b"body"))
    message = Message("amq.topic", f"retained.{client_id}", header_of(is_persistent=True), b"body")
    vhost.retained.keep(message)
    vhost.wills.leave(client_id, message, True, 600)
    vhost.sessions.close(session)
    broker.commit()


def use_and_delete(broker: MemoryBroker, times: int) -> None:
    """Declare a virtual host, use all its features, and delete it."""
    vhost = broker.kernel.declare_vhost("other")
    broker.kernel.trace_to_table("other", True)
    for number in range(times):
        definition = {"max-length-bytes": 1_000_000, "alternate-exchange": "amq.direct"}
        broker.kernel.put_policy(PolicyRecord("other", f"p{number}", False, ".*", "all", number, definition))
        for name, arguments in QUEUES.items():
            use_queue(broker, vhost, f"{name} {number}", arguments)
        use_exchanges(vhost, number)
        use_session(broker, vhost, f"client-{number}")
    broker.kernel.delete_vhost("other")
    settle(broker)
    assert "other" not in broker.kernel.vhost_by_name


@pytest.mark.parametrize("arguments", QUEUES.values(), ids=QUEUES)
def test_a_deleted_queue_leaves_no_garbage(broker: MemoryBroker, arguments: Arguments) -> None:
    def use_and_delete_queue() -> None:
        use_queue(broker, broker.vhost, "q", arguments)
        broker.vhost.delete_queue(broker.vhost.queue("q"))
        settle(broker)
        for _ in broker.vhost.exchange("amq.topic").passed_on():
            pass  # removes counters of deleted queues, as the statistics do

    assert classes(garbage_of(use_and_delete_queue)) == {}


def test_deleted_exchanges_leave_no_garbage(broker: MemoryBroker) -> None:
    def use_and_delete_exchanges() -> None:
        use_exchanges(broker.vhost, 1)
        for name in [name for name in broker.vhost.exchange_by_name if name.endswith("-1")]:
            broker.vhost.delete_exchange(name)
        settle(broker)

    assert classes(garbage_of(use_and_delete_exchanges)) == {}


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_deleted_virtual_host_leaves_no_garbage(broker: MemoryBroker, times: int) -> None:
    assert classes(garbage_of(lambda: use_and_delete(broker, times))) == {}
