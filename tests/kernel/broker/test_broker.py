"""The broker: virtual hosts, alarms, tracers and the store's callbacks."""

from collections.abc import Sequence

import pytest

from gateway.kernel.alarms import Alarms, Resource
from gateway.kernel.archives.tracing import VhostTracing
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.names import TRACE_EXCHANGE
from gateway.kernel.slow_calls import SlowCalls
from gateway.testing import MemoryBroker, Recipient, header_of

HERE = Origin(connection="here", channel=1, user="guest", protocol="AMQP 0-9-1")


class FakeConnection:
    """A connection that records calls."""

    name = "connection"

    def __init__(self, vhost_name: str = "/", user_name: str = "guest") -> None:
        self.vhost_name = vhost_name
        self.user_name = user_name
        self.calls: list[str] = []

    def force_close(self, reason: str) -> None:
        self.calls.append(reason)

    def update_flow_control(self) -> None:
        self.calls.append("weigh")

    def fail_confirms(self) -> None:
        self.calls.append("fail confirms")

    def fail(self) -> None:
        self.calls.append("fail")

    def tick(self) -> int:
        self.calls.append("tick")
        return 0

    def rested(self, ticks: int) -> None:
        self.calls.append("rested")


def connect(broker: MemoryBroker, *connections: FakeConnection) -> None:
    for connection in connections:
        broker.kernel.connections.add(connection)


# Virtual hosts


def test_an_unknown_virtual_host_is_not_allowed(broker: MemoryBroker) -> None:
    """R2."""
    with pytest.raises(NotAllowed, match="vhost nowhere not found"):
        broker.kernel.vhost("nowhere")


def test_virtual_hosts_are_isolated(broker: MemoryBroker) -> None:
    """R2."""
    other = broker.kernel.declare_vhost("other")
    broker.vhost.declare_queue("q")
    queue = other.declare_queue("q")
    other.bind(other.exchange("amq.fanout"), queue, "")
    broker.publish("q")
    broker.publish("", exchange="amq.fanout")
    assert (len(broker.vhost.queue("q")), len(queue)) == (1, 0)


def test_deleting_a_virtual_host_deletes_everything_in_it(broker: MemoryBroker) -> None:
    kernel = broker.kernel
    other = kernel.declare_vhost("other")
    other.bind(
        other.declare_exchange("x", "topic", is_durable=True), other.declare_queue("q", is_durable=True), "#", {"a": 1}
    )
    message = Message("", "q", header_of(is_persistent=True), b"body")
    other.publish(other.default_exchange, message)
    kernel.directory.put_user(UserRecord("guest", "", "", [], {}))
    kernel.directory.put_permission(PermissionRecord("other", "guest", "", "", ""))
    kernel.put_policy(PolicyRecord("other", "p", False, ".*", "all", 0, {"max-length": 1}))
    kernel.parameters.put(ParameterRecord("other", "shovel", "s", {}))
    inside, outside = FakeConnection("other"), FakeConnection("/")
    connect(broker, inside, outside)
    broker.commit()
    kernel.delete_vhost("other")
    broker.commit()
    after = broker.crashed()
    assert (inside.calls, outside.calls) == (["vhost 'other' is deleted"], [])
    assert set(after.kernel.vhost_by_name) == {"/"}
    assert (after.kernel.policies, after.kernel.parameters) == ({}, {})
    assert list(after.kernel.directory.permissions) == []
    assert after.store.held_ids == frozenset()


def test_deleting_a_user_closes_its_connections_and_invalidates_cached_permissions(broker: MemoryBroker) -> None:
    directory = broker.kernel.directory
    directory.put_user(UserRecord("guest", "", "", [], {}))
    guest, other = FakeConnection(user_name="guest"), FakeConnection(user_name="other")
    connect(broker, guest, other)
    version = broker.vhost.version
    directory.remove_user("guest")
    assert broker.vhost.version > version
    assert (guest.calls, other.calls) == (["user 'guest' is deleted"], [])


# Alarms and the store


def test_an_alarm_is_active_until_it_is_cleared() -> None:
    alarms, events = Alarms(), list[bool]()
    alarms.subscribe(lambda: events.append(bool(alarms)))
    alarms.set(Resource.MEMORY, True, "410 MB")
    alarms.set(Resource.MEMORY, True)
    alarms.set(Resource.DISK, True)
    assert alarms.reason == "low on memory & low on disk"
    assert alarms.standing[Resource.MEMORY] == "410 MB"
    alarms.set(Resource.MEMORY, False)
    assert alarms.reason == "low on disk"
    alarms.set(Resource.DISK, False)
    alarms.set(Resource.DISK, False)
    assert events == [True, True, True, False]


def test_connections_update_flow_control_when_an_alarm_changes(broker: MemoryBroker) -> None:
    connection = FakeConnection()
    connect(broker, connection)
    broker.kernel.alarms.set(Resource.DISK, True)
    broker.kernel.alarms.set(Resource.DISK, False)
    assert connection.calls == ["weigh", "weigh"]


def test_consumers_are_served_while_an_alarm_is_active(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    broker.publish("q", b"body")
    broker.kernel.alarms.set(Resource.MEMORY, True)
    recipient = Recipient()
    recipient.consume(queue)
    assert recipient.bodies == [b"body"]


def test_a_stalled_store_raises_an_alarm_and_loses_nothing(broker: MemoryBroker) -> None:
    events: list[str] = []
    broker.kernel.events.subscribe(lambda event: events.append(event.name))
    broker.vhost.declare_queue("q", is_durable=True)
    broker.store.stall("disk full")
    broker.publish("q", b"body", is_persistent=True)
    broker.commit()
    assert broker.kernel.alarms.standing == {Resource.STORE: "disk full"}
    assert broker.crashed().vhost.queue_by_name == {}
    broker.store.resume()
    broker.commit()
    assert not broker.kernel.alarms
    assert len(broker.crashed().vhost.queue("q")) == 1
    assert [name for name in events if name.startswith("store.")] == ["store.stalled", "store.resumed"]


def test_a_failed_store_fails_pending_confirms_and_is_reported(broker: MemoryBroker) -> None:
    """R120."""
    reasons: list[str] = []
    broker.kernel.store_reports.on_failure = reasons.append
    connection = FakeConnection()
    connect(broker, connection)
    broker.store.fail("disk gone")
    assert connection.calls == ["fail confirms", "weigh"]
    assert reasons == ["disk gone"]


def test_listeners_are_called_in_the_order_of_their_subscriptions(broker: MemoryBroker) -> None:
    events: list[str] = []
    broker.kernel.events.subscribe(lambda event: events.append("first"))
    broker.kernel.events.subscribe(lambda event: events.append("second"))
    broker.kernel.events.emit(Event("anything"))
    assert events == ["first", "second"]


def test_a_protected_virtual_host_cannot_be_deleted(broker: MemoryBroker) -> None:
    broker.vhost.declare_queue("q", is_durable=True)
    broker.kernel.protect_vhost("/", True)
    broker.commit()
    broker = broker.crashed()
    with pytest.raises(PreconditionFailed, match=r"^Refusing to delete virtual host '/' because it is protected"):
        broker.kernel.delete_vhost("/")
    assert "q" in broker.vhost.queue_by_name
    broker.kernel.protect_vhost("/", False)
    broker.kernel.delete_vhost("/")
    assert not broker.kernel.vhost_by_name


def test_unchanged_metadata_of_a_virtual_host_writes_no_record(broker: MemoryBroker) -> None:
    broker.kernel.describe_vhost("/", "all", ["a"], "quorum")
    broker.commit()
    before = broker.kernel.journal.pending_lsn
    broker.kernel.describe_vhost("/", "all", ["a"], "quorum")
    broker.kernel.describe_vhost("/")
    assert broker.kernel.journal.pending_lsn == before


# Tracing


class RecordingTracer:
    """A tracer that records calls."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        self.seen.append(("published", list(queues)))

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        self.seen.append(("delivered", (queue, redelivered)))


def test_tracers_are_called_for_publishes_and_deliveries(broker: MemoryBroker) -> None:
    tracer, vhost = RecordingTracer(), broker.vhost
    slow_calls = SlowCalls(broker.kernel.journal.budget, broker.kernel.faults)
    vhost.tracing = VhostTracing("/", (tracer,), vhost.trace_events, broker.kernel.faults, slow_calls)
    queue = vhost.declare_queue("q")
    vhost.publish(vhost.default_exchange, Message("", "q", header_of(), b""), HERE)
    vhost.publish(vhost.default_exchange, Message("", "none", header_of(), b""), HERE)
    vhost.tracing.delivered(Message("", "q", header_of(), b""), queue, True, HERE, None)
    assert tracer.seen == [("published", ["q"]), ("published", []), ("delivered", ("q", True))]


class SlowTracer(RecordingTracer):
    """A tracer that takes a millisecond."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__()
        self._clock = broker.clock

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        self._clock.advance(0.001)


def test_the_time_of_a_tracer_is_charged_to_the_turn(broker: MemoryBroker) -> None:
    vhost, budget = broker.vhost, broker.kernel.journal.budget
    slow_calls = SlowCalls(budget, broker.kernel.faults)
    vhost.declare_queue("q")
    for tracer, is_charged in ((RecordingTracer(), False), (SlowTracer(broker), True)):
        vhost.tracing = VhostTracing("/", (tracer,), vhost.trace_events, broker.kernel.faults, slow_calls)
        vhost.publish(vhost.default_exchange, Message("", "q", header_of(), b""), HERE)  # its route is known then
        budget.renew()
        vhost.publish(vhost.default_exchange, Message("", "q", header_of(), b""), HERE)
        assert (budget.work >= WORK_PER_CLOCK_READING) is is_charged


class FailingTracer(RecordingTracer):
    """A tracer that raises."""

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        raise ValueError("no price")


def test_the_report_of_a_fault_is_no_time_of_the_tracer(broker: MemoryBroker) -> None:
    vhost, faults = broker.vhost, broker.kernel.faults
    broker.kernel.events.subscribe(lambda event: broker.clock.advance(0.15))
    slow_calls = SlowCalls(broker.kernel.journal.budget, faults)
    vhost.tracing = VhostTracing("/", (FailingTracer(),), vhost.trace_events, faults, slow_calls)
    vhost.publish(vhost.default_exchange, Message("", "none", header_of(), b""), HERE)
    assert faults.count_by_kind == {"tracer": 1}


def test_the_firehose_publishes_copies_while_tracing_is_enabled_also_after_a_restart(broker: MemoryBroker) -> None:
    vhost = broker.vhost
    vhost.bind(vhost.exchange(TRACE_EXCHANGE), vhost.declare_queue("trace", is_durable=True), "#")
    message = Message("", "nowhere", header_of(), b"body")
    vhost.publish(vhost.default_exchange, message, HERE)
    assert len(vhost.queue("trace")) == 0
    broker.kernel.trace("/", True)
    vhost.publish(vhost.default_exchange, message, HERE)
    recipient = Recipient()
    recipient.consume(vhost.queue("trace"))
    assert [(each.body, each.message.routing_key) for each in recipient.received] == [(b"body", "publish.")]
    broker.commit()
    restarted = broker.crashed()
    restarted.vhost.publish(restarted.vhost.default_exchange, message, HERE)
    assert len(restarted.vhost.queue("trace")) == 1
    restarted.kernel.trace("/", False)
    restarted.vhost.publish(restarted.vhost.default_exchange, message, HERE)
    assert len(restarted.vhost.queue("trace")) == 1
