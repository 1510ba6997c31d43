"""The limits of a node apply where virtual hosts and users have none of their own, for AMQP and STOMP."""

import pytest

from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connection_limits import require_room_for_channel, require_room_for_connection
from gateway.kernel.broker.connections import Connections
from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.settings.limits import ConnectionLimits
from gateway.kernel.settings.user_counters import UserRules
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import FakeClock, Recipient
from gateway.testing.broker import MemoryBroker


class FakeConnection:
    """A connection for the connection list of a broker."""

    def __init__(self, vhost: str = "", user: str = "") -> None:
        self.vhost_name = vhost
        self.user_name = user
        self.closed = ""
        self.dropped_for = ""

    def give_up(self, reason: str) -> None:
        self.dropped_for = reason

    def force_close(self, reason: str) -> None:
        self.closed = reason


def limited_broker(**rules: int) -> MemoryBroker:
    broker = MemoryBroker()
    broker.vhost.queues.rules = QueueRules(**rules)
    return broker


def test_the_node_limits_queues_per_virtual_host() -> None:
    vhost = limited_broker(max_queues=2).vhost
    vhost.declare_queue("a")
    vhost.declare_queue("b")
    vhost.declare_queue("b")
    with pytest.raises(PreconditionFailed, match=r"queue limit in vhost '/' \(2\) is reached"):
        vhost.declare_queue("c")
    vhost.delete_queue(vhost.queue("a"))
    assert vhost.declare_queue("c").name == "c"


def test_the_node_limits_exclusive_queues_per_connection() -> None:
    vhost = limited_broker(max_exclusive_queues=1).vhost
    one, other = object(), object()
    vhost.declare_queue("a", owner=one)
    vhost.declare_queue("b", owner=other)
    vhost.declare_queue("shared")
    with pytest.raises(PreconditionFailed, match=r"limit of exclusive queues per connection \(1\) is reached"):
        vhost.declare_queue("c", owner=one)
    vhost.release(one)
    assert vhost.declare_queue("c", owner=one).name == "c"


def test_the_node_limits_bindings_per_virtual_host() -> None:
    vhost = limited_broker(max_bindings=2).vhost
    queue, topic = vhost.declare_queue("a"), vhost.exchange("amq.topic")
    vhost.bind(topic, queue, "x")
    vhost.bind(topic, queue, "y")
    vhost.bind(topic, queue, "y")
    with pytest.raises(PreconditionFailed, match=r"binding limit in vhost '/' \(2\) is reached"):
        vhost.bind(topic, queue, "z")
    vhost.unbind(topic, queue, "x")
    vhost.bind(topic, queue, "z")
    vhost.delete_queue(queue)
    assert vhost.bindings.count == 0


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "stream"}], ids=["queue", "stream"])
def test_the_node_limits_consumers(arguments: dict[str, object]) -> None:
    broker = limited_broker(max_consumers=1, max_consumers_per_channel=3)
    vhost = broker.vhost
    queue = vhost.declare_queue("a", is_durable=True, arguments=arguments)  # type: ignore[arg-type]
    vhost.queues.require_room_for_consumer(0, "guest")
    worker = Recipient()
    consumer = worker.consume(queue, prefetch=5)
    with pytest.raises(PreconditionFailed, match=r"consumer limit in vhost '/' \(1\) is reached"):
        vhost.queues.require_room_for_consumer(0, "guest")
    with pytest.raises(NotAllowed, match=r"reached maximum \(3\) of consumers per channel"):
        vhost.queues.require_room_for_consumer(3, "guest")
    queue.cancel(consumer)
    queue.cancel(consumer)
    vhost.queues.require_room_for_consumer(0, "guest")
    worker.consume(queue, prefetch=5)
    vhost.delete_queue(queue)
    vhost.queues.require_room_for_consumer(0, "guest")


def test_a_virtual_host_limit_replaces_the_node_limit() -> None:
    broker = limited_broker(max_queues=1, max_bindings=1)
    broker.kernel.limit_vhost("/", {"max-queues": 3, "max-bindings": -1})
    for name in ("a", "b", "c"):
        broker.vhost.bind(broker.vhost.exchange("amq.topic"), broker.vhost.declare_queue(name), name)
    with pytest.raises(PreconditionFailed, match=r"\(3\) is reached"):
        broker.vhost.declare_queue("d")


# Users


def limited_user(**limits: int) -> MemoryBroker:
    """Return a broker whose user guest has these limits; ``max_queues`` stands for ``max-queues``."""
    broker = MemoryBroker()
    named = {name.replace("_", "-"): limit for name, limit in limits.items()}
    broker.kernel.directory.put_user(UserRecord("guest", "", "", [], dict(named)))
    return broker


def test_queues_of_a_user_are_counted_over_all_virtual_hosts_and_across_restarts() -> None:
    broker = limited_user(max_queues=2)
    other = broker.kernel.declare_vhost("other")
    broker.vhost.declare_queue("a", is_durable=True, user="guest")
    other.declare_queue("b", is_durable=True, arguments={"x-queue-type": "stream"}, user="guest")
    broker.vhost.declare_queue("c", user="anna")
    broker.commit()
    for kernel in (broker.kernel, broker.crashed().kernel):
        full = kernel.vhost("/")
        refusal = r"cannot declare queue 'd': queue limit of user 'guest' \(2\) is reached"
        with pytest.raises(PreconditionFailed, match=refusal):
            full.declare_queue("d", user="guest")
        full.declare_queue("a", is_durable=True, user="guest")
        kernel.vhost("other").delete_queue(kernel.vhost("other").queue("b"))
        assert full.declare_queue("d", user="guest").user == "guest"


def test_bindings_of_a_user_are_counted_across_restarts() -> None:
    broker = limited_user(max_bindings=1)
    queue, topic = broker.vhost.declare_queue("q", is_durable=True), broker.vhost.exchange("amq.topic")
    broker.vhost.bind(topic, queue, "a", user="guest")
    broker.vhost.bind(topic, queue, "b", user="anna")
    broker.commit()
    for vhost in (broker.vhost, broker.crashed().vhost):
        queue, topic = vhost.queue("q"), vhost.exchange("amq.topic")
        vhost.bind(topic, queue, "a", user="guest")
        with pytest.raises(PreconditionFailed, match=r"cannot bind: binding limit of user 'guest' \(1\) is reached"):
            vhost.bind(topic, queue, "c", user="guest")
        vhost.unbind(topic, queue, "a")
        vhost.bind(topic, queue, "c", user="guest")


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "stream"}], ids=["queue", "stream"])
def test_the_consumers_of_a_user_are_limited(arguments: dict[str, object]) -> None:
    broker = limited_user(max_consumers=1)
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments=arguments)  # type: ignore[arg-type]
    worker = Recipient()
    consumer = worker.consume(queue, prefetch=5)
    with pytest.raises(PreconditionFailed, match=r"consumer limit of user 'guest' \(1\) is reached"):
        broker.vhost.queues.require_room_for_consumer(0, "guest")
    broker.vhost.queues.require_room_for_consumer(0, "anna")
    worker.cancel(consumer)
    broker.vhost.queues.require_room_for_consumer(0, "guest")
    worker.consume(queue, prefetch=5)
    broker.vhost.delete_queue(queue)
    broker.vhost.queues.require_room_for_consumer(0, "guest")


def test_the_node_limits_apply_to_users_without_their_own() -> None:
    broker = limited_user(max_queues=-1)
    broker.kernel.user_tallies.apply(UserRules(max_queues=1))
    for name in ("a", "b"):
        broker.vhost.declare_queue(name, user="guest")
    broker.vhost.declare_queue("c", user="anna")
    with pytest.raises(PreconditionFailed, match=r"queue limit of user 'anna' \(1\) is reached"):
        broker.vhost.declare_queue("d", user="anna")


def test_deleting_a_virtual_host_resets_the_counts() -> None:
    broker = limited_user(max_queues=5)
    other = broker.kernel.declare_vhost("other")
    queue = other.declare_queue("q", is_durable=True, user="guest")
    other.bind(other.exchange("amq.topic"), queue, "k", user="guest")
    worker = Recipient()
    worker.consume(queue)
    broker.kernel.delete_vhost("other")
    broker.advance(1)
    channel_counters = broker.kernel.user_tallies
    assert [
        tally.count_of("guest")
        for tally in (channel_counters.queues, channel_counters.bindings, channel_counters.consumers)
    ] == [0, 0, 0]


# Connections


def limited(kernel: Broker, **limits: int) -> Connections:
    kernel.connections.limits = ConnectionLimits(**limits)
    return kernel.connections


def log_in(connections: Connections, connection: FakeConnection) -> FakeConnection:
    connections.add(connection)  # type: ignore[arg-type]
    connections.entered(connection)  # type: ignore[arg-type]
    return connection


def test_connections_of_a_user_and_of_a_virtual_host_are_limited() -> None:
    kernel = MemoryBroker().kernel
    connections = limited(kernel, per_user=1, per_vhost=2)
    anna = log_in(connections, FakeConnection("/", "anna"))
    with pytest.raises(NotAllowed, match=r"user connection limit \(1\) is reached"):
        require_room_for_connection(kernel, "/", "anna")
    require_room_for_connection(kernel, "/", "bert")
    log_in(connections, FakeConnection("/", "bert"))
    with pytest.raises(NotAllowed, match=r"connection limit \(2\) is reached"):
        require_room_for_connection(kernel, "/", "carl")
    connections.remove(anna)  # type: ignore[arg-type]
    connections.remove(anna)  # type: ignore[arg-type]
    require_room_for_connection(kernel, "/", "anna")


def test_a_users_own_channel_limit_replaces_the_node_limit() -> None:
    kernel = MemoryBroker().kernel
    connections = limited(kernel, channels_per_user=1)
    connections.channel_opened("anna")
    with pytest.raises(NotAllowed, match=r"user limit of \(1\)"):
        require_room_for_channel(kernel, "anna")
    kernel.directory.put_user(UserRecord("anna", "", "", [], {"max-channels": 2}))
    require_room_for_channel(kernel, "anna")
    connections.channel_closed("anna")
    assert connections.channels_of("anna") == 0


def test_the_oldest_unauthenticated_connection_is_dropped() -> None:
    kernel = MemoryBroker().kernel
    connections = limited(kernel, unauthenticated=2)
    authenticated = log_in(connections, FakeConnection("/", "anna"))
    newcomers = [FakeConnection() for _ in range(4)]
    for newcomer in newcomers:
        connections.add(newcomer)  # type: ignore[arg-type]
    assert [bool(newcomer.dropped_for) for newcomer in newcomers] == [True, True, False, False]
    assert not authenticated.dropped_for


def test_zero_counts_are_removed() -> None:
    connections = Connections()
    for number in range(100):
        connections.remove(log_in(connections, FakeConnection("/", f"user{number}")))  # type: ignore[arg-type]
    assert not connections._count_by_user
    assert not connections._count_by_vhost


def test_the_connections_of_a_deleted_user_are_closed_in_slices() -> None:
    clock = FakeClock()
    broker = MemoryBroker(clock=clock)
    kernel, vhost = broker.kernel, broker.vhost
    assert isinstance(vhost, VirtualHost)
    kernel.directory.put_user(UserRecord("anna", "", "", [], {}))

    class Slow(FakeConnection):
        def force_close(self, reason: str) -> None:
            super().force_close(reason)
            clock.advance(0.004)

    annas = [log_in(kernel.connections, Slow("/", "anna")) for _ in range(20)]
    bert = log_in(kernel.connections, FakeConnection("/", "bert"))
    kernel.directory.remove_user("anna")
    done = sum(bool(anna.closed) for anna in annas)
    assert 1 <= done <= 4, "a slice of 10 ms"
    clock.advance(1)
    assert all(anna.closed == "user 'anna' is deleted" for anna in annas)
    assert not bert.closed
