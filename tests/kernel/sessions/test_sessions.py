"""Sessions: connection, takeover, expiry, and the messages that wait for disconnected clients."""

import pytest

from gateway.kernel.errors import NotAllowed, ResourceLocked
from gateway.kernel.events import Event
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.sessions.session import NEVER_S, Session
from gateway.testing import MemoryBroker, Recipient
from tests.garbage import living
from tests.kernel.session_clients import Client, durable_entities, publish_to_topic

TOPICS = "amq.topic"


@pytest.fixture
def sensor(broker: MemoryBroker) -> Client:
    """A connected client whose session expires a minute after a disconnect."""
    client = Client(broker)
    client.connect()
    return client


def after_crash(client: Client) -> Client:
    """Return the client on a broker that starts after a crash; it has to connect again."""
    client.broker.commit()
    return Client(client.broker.crashed(), client.client_id)


def bindings_of(client: Client) -> list[tuple[str, str]]:
    """Return the client's bindings: queue and binding key."""
    vhost = client.broker.vhost
    return [
        (binding.destination.name, binding.routing_key)
        for binding in vhost.bindings.of(vhost.exchange(TOPICS))
        if binding.destination.name.startswith("mqtt-")
    ]


# ---- Connect, disconnect, reconnect ----------------------------------------------------------------------------------


def test_a_session_is_present_for_a_reconnecting_client(sensor: Client) -> None:
    sensor.leave()
    assert sensor.connect()


def test_a_new_client_has_no_session_present(broker: MemoryBroker) -> None:
    assert not Client(broker).connect()


def test_a_clean_start_discards_the_session(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t")
    publish_to_topic(broker, "t")
    sensor.leave()
    assert not sensor.connect(is_clean=True)
    assert not len(sensor.session.subscriptions)
    assert sensor.session.queues() == []


def test_a_session_without_expiry_ends_with_its_connection(broker: MemoryBroker) -> None:
    client = Client(broker)
    client.connect(expiry_s=0)
    client.subscribe("t")
    client.leave()
    assert broker.vhost.sessions.get("sensor") is None
    assert not [name for name in broker.vhost.queue_by_name if name.startswith("mqtt-")]


def test_an_ended_session_is_freed_from_memory(broker: MemoryBroker) -> None:
    with living(Session) as sessions:
        for number in range(20):
            client = Client(broker, f"client-{number}")
            client.connect(expiry_s=number % 2)
            client.subscribe("t", qos=number % 3)
            client.subscribe("$share/group/t")
            assert sessions() >= 1, "a live session is counted"
            client.leave()
        broker.advance(2)
        assert sessions() == 0


def test_a_session_takeover_disconnects_the_earlier_connection(sensor: Client, broker: MemoryBroker) -> None:
    again = Client(broker)
    assert again.connect()
    assert not sensor.is_connected
    assert again.session.holder is again


def test_a_takeover_ends_a_session_without_expiry(broker: MemoryBroker) -> None:
    first, second = Client(broker), Client(broker)
    first.connect(expiry_s=0)
    earlier = first.session
    assert not second.connect(expiry_s=0)
    assert second.session is not earlier


def test_the_expiry_is_that_of_the_latest_connection(sensor: Client, broker: MemoryBroker) -> None:
    sensor.leave()
    sensor.connect(expiry_s=0)
    sensor.leave()
    assert broker.vhost.sessions.get("sensor") is None
    broker.commit()
    assert durable_entities(broker) == []


def test_a_session_changed_to_no_expiry_is_removed_after_a_kill(sensor: Client, broker: MemoryBroker) -> None:
    sensor.session.qos2_state.receive(1)
    sensor.subscribe("t")
    sensor.connect(expiry_s=0)
    broker.commit()
    started = broker.crashed()
    started.advance(0)
    started.commit()
    assert durable_entities(started) == []


# ---- Expiry ----------------------------------------------------------------------------------------------------------


def test_a_session_expires_at_its_expiry_interval(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t")
    sensor.leave()
    broker.advance(59.9)
    assert len(broker.vhost.sessions) == 1
    broker.advance(0.1)
    assert len(broker.vhost.sessions) == 0
    assert "mqtt-subscription-sensorqos1" not in broker.vhost.queue_by_name


def session_events(broker: MemoryBroker) -> list[tuple[str, str, dict[str, object]]]:
    """Return a list that gets the events of sessions from now on: name, client, details."""
    found: list[tuple[str, str, dict[str, object]]] = []

    def note(event: Event) -> None:
        if event.name.startswith("session."):
            found.append((event.name, event.subject, dict(event.details)))

    broker.kernel.events.subscribe(note)
    return found


def test_a_session_has_events_from_its_creation_to_its_expiry(broker: MemoryBroker) -> None:
    events, client = session_events(broker), Client(broker)
    client.connect(expiry_s=60)
    client.leave()
    client.connect(expiry_s=30)
    client.leave()
    broker.advance(30)
    assert events == [
        ("session.created", "sensor", {"user": "", "expiry_s": 60, "durable": True}),
        ("session.resumed", "sensor", {"user": "", "expiry_s": 30, "durable": True}),
        ("session.deleted", "sensor", {"user": "", "expiry_s": 30, "expired": True}),
    ]


def test_a_clean_start_reports_the_end_of_the_earlier_session(sensor: Client, broker: MemoryBroker) -> None:
    events = session_events(broker)
    sensor.connect(is_clean=True, expiry_s=0)
    sensor.leave()
    assert [(name, details.get("expired")) for name, _, details in events] == [
        ("session.deleted", False), ("session.created", None), ("session.deleted", False),
    ]  # fmt: skip


def test_the_expiry_interval_runs_only_while_the_client_is_disconnected(sensor: Client, broker: MemoryBroker) -> None:
    broker.advance(1000)
    sensor.leave()
    broker.advance(59)
    sensor.connect()
    broker.advance(1000)
    sensor.leave()
    broker.advance(59)
    assert sensor.connect()


def test_the_maximum_expiry_interval_means_never(broker: MemoryBroker) -> None:
    client = Client(broker)
    client.connect(expiry_s=NEVER_S)
    client.leave()
    broker.advance(10 * NEVER_S)
    assert client.connect()


@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_the_expiry_interval_continues_over_a_restart(sensor: Client, broker: MemoryBroker, ends: str) -> None:
    sensor.leave()
    broker.commit()
    broker.advance(30)
    started = broker.crashed() if ends == "killed" else broker.stopped()
    started.advance(29.9)
    assert len(started.vhost.sessions) == 1
    started.advance(0.1)
    assert len(started.vhost.sessions) == 0


def test_after_a_kill_the_expiry_interval_of_connected_clients_begins_at_the_start(
    sensor: Client, broker: MemoryBroker
) -> None:
    broker.commit()
    broker.advance(1000)
    started = broker.crashed()
    started.commit()
    started.advance(30)
    again = started.crashed()
    again.advance(29.9)
    assert len(again.vhost.sessions) == 1
    again.advance(0.1)
    assert len(again.vhost.sessions) == 0


def test_sessions_that_expired_during_the_downtime_end_at_the_start(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t")
    sensor.leave()
    broker.commit()
    broker.clock.advance(61)
    started = broker.crashed()
    started.advance(0)
    started.commit()
    assert len(started.vhost.sessions) == 0
    assert durable_entities(started) == []


# ---- Queues and messages ---------------------------------------------------------------------------------------------


def test_queues_of_sessions_have_rabbitmq_names(sensor: Client) -> None:
    assert sensor.subscribe("a", 0).name == "mqtt-subscription-sensorqos0"
    assert sensor.subscribe("b", 1).name == "mqtt-subscription-sensorqos1"
    assert sensor.subscribe("c", 2).name == "mqtt-subscription-sensorqos1"
    assert sensor.subscribe("$share/group/d/+").name == "mqtt-shared-group-d.*"


def test_messages_wait_for_a_disconnected_client(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t/+")
    sensor.leave()
    publish_to_topic(broker, "t/1", b"one")
    sensor.connect()
    (queue,) = sensor.session.queues()
    recipient = Recipient()
    recipient.consume(queue)
    assert recipient.bodies == [b"one"]


def test_a_session_its_subscriptions_and_messages_survive_a_crash(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t/+", 2)
    sensor.subscribe("u", 0)
    sensor.leave()
    publish_to_topic(broker, "t/1", b"one")
    found = after_crash(sensor)
    publish_to_topic(found.broker, "u", b"two")
    assert found.connect()
    assert sorted((s.filter, s.qos) for s in found.session.subscriptions) == [("t/+", 2), ("u", 0)]
    recipient = Recipient()
    for queue in found.session.queues():
        recipient.consume(queue)
    assert sorted(recipient.bodies) == [b"one", b"two"]


def test_queues_of_a_session_without_expiry_are_exclusive_and_transient(broker: MemoryBroker) -> None:
    client = Client(broker)
    client.connect(expiry_s=0)
    queue = client.subscribe("t")
    assert queue.owner is client.session
    assert not queue.id
    broker.commit()
    assert durable_entities(broker) == []


def test_queues_have_the_limits_of_their_qos(broker: MemoryBroker) -> None:
    broker.vhost.sessions.limits = {0: {"x-max-length": 7}, 1: {}}
    client = Client(broker)
    client.connect()
    assert client.subscribe("a", 0).arguments == {"x-max-length": 7}
    assert client.subscribe("b", 1).arguments == {}


def test_an_exclusive_queue_of_the_same_name_is_not_used(sensor: Client, broker: MemoryBroker) -> None:
    broker.vhost.declare_queue("mqtt-subscription-sensorqos1", owner=object())
    with pytest.raises(ResourceLocked):
        sensor.subscribe("t")
    assert not len(sensor.session.subscriptions)
    assert sensor.session.queues() == []
    sensor.connect(is_clean=True)
    assert "mqtt-subscription-sensorqos1" in broker.vhost.queue_by_name


def test_waiting_messages_stay_after_unsubscribing(sensor: Client, broker: MemoryBroker) -> None:
    queue = sensor.subscribe("t")
    publish_to_topic(broker, "t", b"before")
    sensor.unsubscribe("t")
    publish_to_topic(broker, "t", b"after")
    assert len(queue) == 1
    assert bindings_of(sensor) == []


def test_another_qos_moves_a_subscription_to_the_other_queue(sensor: Client) -> None:
    sensor.subscribe("t", 0)
    sensor.subscribe("t", 2)
    assert bindings_of(sensor) == [("mqtt-subscription-sensorqos1", "t")]
    sensor.subscribe("t", 1)
    assert bindings_of(sensor) == [("mqtt-subscription-sensorqos1", "t")]
    sensor.subscribe("t", 0)
    assert bindings_of(sensor) == [("mqtt-subscription-sensorqos0", "t")]


def test_a_binding_is_removed_with_the_last_filter_that_uses_it(sensor: Client) -> None:
    sensor.subscribe("a/b")
    sensor.subscribe("a.b")  # the same binding key, since topics are mapped as in RabbitMQ
    sensor.unsubscribe("a/b")
    assert bindings_of(sensor) == [("mqtt-subscription-sensorqos1", "a.b")]
    sensor.unsubscribe("a.b")
    assert bindings_of(sensor) == []


def test_unsubscribing_survives_a_crash(sensor: Client) -> None:
    sensor.subscribe("t")
    sensor.subscribe("u")
    sensor.unsubscribe("t")
    found = after_crash(sensor)
    assert [subscription.filter for subscription in found.session.subscriptions] == ["u"]
    assert bindings_of(found) == [("mqtt-subscription-sensorqos1", "u")]


def test_a_queue_deleted_by_an_operator_is_restored_with_its_bindings(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t")
    sensor.subscribe("u")
    sensor.subscribe("v", 0)
    sensor.leave()
    broker.vhost.delete_queue(broker.vhost.queue("mqtt-subscription-sensorqos1"))
    sensor.connect()
    sensor.session.restore_queues(broker.vhost.exchange(TOPICS))
    publish_to_topic(broker, "t")
    publish_to_topic(broker, "u")
    assert sorted((queue.name, len(queue)) for queue in sensor.session.queues()) == [
        ("mqtt-subscription-sensorqos0", 0),
        ("mqtt-subscription-sensorqos1", 2),
    ]


def test_a_session_can_end_after_an_operator_deleted_its_queue(sensor: Client, broker: MemoryBroker) -> None:
    sensor.subscribe("t")
    broker.vhost.delete_queue(broker.vhost.queue("mqtt-subscription-sensorqos1"))
    sensor.unsubscribe("t")
    sensor.leave()
    sensor.connect(is_clean=True, expiry_s=0)
    broker.commit()
    assert durable_entities(broker) == []


# ---- Shared subscriptions --------------------------------------------------------------------------------------------


@pytest.fixture
def members(broker: MemoryBroker) -> list[Client]:
    """Two clients with a shared subscription to ``t``."""
    clients = [Client(broker, "one"), Client(broker, "two")]
    for client in clients:
        client.connect()
        client.subscribe("$share/group/t")
    return clients


def test_members_of_a_group_share_one_queue(members: list[Client], broker: MemoryBroker) -> None:
    publish_to_topic(broker, "t")
    first, second = (client.session.queues() for client in members)
    assert first == second == [broker.vhost.queue("mqtt-shared-group-t")]
    assert len(first[0]) == 1


def test_each_group_and_filter_has_its_own_queue(members: list[Client]) -> None:
    names = {members[0].subscribe(filter).name for filter in ("$share/group/t", "$share/group/u", "$share/others/t")}
    assert names == {"mqtt-shared-group-t", "mqtt-shared-group-u", "mqtt-shared-others-t"}


def test_long_group_names_are_shortened_to_unique_queue_names(members: list[Client]) -> None:
    names = {members[0].subscribe(f"$share/{'g' * 250}{end}/t").name for end in "ab"}
    assert len(names) == 2
    assert all(len(name) <= 255 for name in names)


def test_the_queue_of_a_group_is_deleted_with_its_last_member(members: list[Client], broker: MemoryBroker) -> None:
    members[0].unsubscribe("$share/group/t")
    assert "mqtt-shared-group-t" in broker.vhost.queue_by_name
    members[1].leave()
    assert "mqtt-shared-group-t" in broker.vhost.queue_by_name
    broker.advance(60)
    assert "mqtt-shared-group-t" not in broker.vhost.queue_by_name


def test_the_queue_of_a_group_is_kept_while_it_has_a_consumer(members: list[Client], broker: MemoryBroker) -> None:
    Recipient().consume(broker.vhost.queue("mqtt-shared-group-t"))
    for member in members:
        member.unsubscribe("$share/group/t")
    assert "mqtt-shared-group-t" in broker.vhost.queue_by_name


def test_a_member_that_joins_twice_leaves_once(members: list[Client], broker: MemoryBroker) -> None:
    members[0].subscribe("$share/group/t", 2)
    members[1].unsubscribe("$share/group/t")
    members[0].unsubscribe("$share/group/t")
    assert "mqtt-shared-group-t" not in broker.vhost.queue_by_name


def test_a_group_survives_a_crash_with_its_members(members: list[Client], broker: MemoryBroker) -> None:
    publish_to_topic(broker, "t", b"one")
    broker.commit()
    started = broker.crashed()
    assert len(started.vhost.queue("mqtt-shared-group-t")) == 1
    again = [Client(started, member.client_id) for member in members]
    for client in again:
        assert client.connect()
    again[0].unsubscribe("$share/group/t")
    assert "mqtt-shared-group-t" in started.vhost.queue_by_name
    again[1].unsubscribe("$share/group/t")
    assert "mqtt-shared-group-t" not in started.vhost.queue_by_name


def test_a_group_without_members_ends_with_its_last_consumer(members: list[Client], broker: MemoryBroker) -> None:
    queue = members[0].subscribe("$share/group/t")
    worker = Recipient()
    consumer = worker.consume(queue)
    for member in members:
        member.unsubscribe("$share/group/t")
    assert not queue.is_deleted
    queue.cancel(consumer)
    broker.vhost.delete_queue_if_done(queue)
    assert queue.is_deleted
    broker.commit()
    assert durable_entities(broker, "group") == []


def test_a_group_with_members_is_kept_when_a_consumer_is_cancelled(members: list[Client], broker: MemoryBroker) -> None:
    queue = members[0].subscribe("$share/group/t")
    queue.cancel(Recipient().consume(queue))
    broker.vhost.delete_queue_if_done(queue)
    assert not queue.is_deleted


def test_a_queue_declared_before_the_group_is_kept(broker: MemoryBroker) -> None:
    """Whatever its name is: another client declared it."""
    queue = broker.vhost.declare_queue("mqtt-shared-group-t", is_durable=True)
    member = Client(broker)
    member.connect(expiry_s=0)
    assert member.subscribe("$share/group/t") is queue
    member.unsubscribe("$share/group/t")
    assert not queue.is_deleted


def test_a_queue_with_a_name_like_that_of_a_group_survives_a_restart(broker: MemoryBroker) -> None:
    broker.vhost.declare_queue("mqtt-shared-orders", is_durable=True)
    broker.commit()
    started = broker.crashed()
    started.advance(1000)
    assert "mqtt-shared-orders" in started.vhost.queue_by_name


def test_a_queue_that_took_the_name_of_a_group_survives_a_restart(members: list[Client], broker: MemoryBroker) -> None:
    queue = members[0].subscribe("$share/group/t")
    broker.vhost.queues.delete(queue)
    broker.vhost.declare_queue("mqtt-shared-group-t", is_durable=True)
    broker.commit()
    started = broker.crashed()
    started.advance(1000)
    assert "mqtt-shared-group-t" in started.vhost.queue_by_name
    started.commit()
    assert durable_entities(started, "group") == []


@pytest.mark.parametrize("rejoining", ["none", "a member", "a consumer"])
def test_after_a_restart_members_of_a_group_have_time_to_reconnect(broker: MemoryBroker, rejoining: str) -> None:
    client = Client(broker)
    client.connect(expiry_s=0)
    client.subscribe("$share/group/t")
    publish_to_topic(broker, "t")
    found = after_crash(client)
    found.broker.advance(299)
    queue = found.broker.vhost.queue("mqtt-shared-group-t")
    assert len(queue) == 1
    if rejoining == "a member":
        found.connect(expiry_s=0)
        found.subscribe("$share/group/t")
    elif rejoining == "a consumer":
        Recipient().consume(queue)
    found.broker.advance(1)
    assert ("mqtt-shared-group-t" in found.broker.vhost.queue_by_name) == (rejoining != "none")


def leave_unacknowledged(member: Client, packet_id: int) -> None:
    """Let a member get a QoS 2 message of the group, and disconnect before it acknowledges it."""
    (queue,) = member.session.queues()
    entry = queue.take()
    assert entry is not None
    member.session.qos2_state.begin(packet_id, entry.position)
    member.session.hold(packet_id, queue, entry)
    member.leave()


def test_an_unacknowledged_qos2_message_stays_with_its_member_over_a_crash(
    members: list[Client], broker: MemoryBroker
) -> None:
    publish_to_topic(broker, "t", b"one")
    publish_to_topic(broker, "t", b"two")
    leave_unacknowledged(members[0], 7)
    broker.commit()
    started = broker.crashed()
    other, member = Recipient(), Client(started, "one")
    other.consume(started.vhost.queue("mqtt-shared-group-t"))
    assert other.bodies == [b"two"]
    ((packet_id, (_, entry)),) = member.session.held.items()
    assert (packet_id, entry.message.body) == (7, b"one")


def test_an_unacknowledged_qos2_message_is_dropped_when_its_session_ends(
    members: list[Client], broker: MemoryBroker
) -> None:
    publish_to_topic(broker, "t", b"one")
    leave_unacknowledged(members[0], 7)
    broker.advance(60)
    other = Recipient()
    members[1].connect()
    other.consume(broker.vhost.queue("mqtt-shared-group-t"))
    assert other.bodies == []
    broker.commit()
    assert broker.store.held_ids == frozenset()
    assert durable_entities(broker, "handshake") == []
    assert len(broker.crashed().vhost.sessions) == 1


# ---- After the end of a session --------------------------------------------------------------------------------------


def fill(client: Client) -> None:
    """Give a session subscriptions, QoS 2 state and a message."""
    for filter, qos in (("t/+", 0), ("t/1", 2), ("$share/group/t/#", 1)):
        client.subscribe(filter, qos)
    qos2_state = client.session.qos2_state
    qos2_state.receive(1)
    qos2_state.begin(2, 99)
    qos2_state.remember(99, 2, 2)
    qos2_state.begin(3, 100)
    qos2_state.proceed(3)
    publish_to_topic(client.broker, "t/1")


def test_the_end_of_a_session_leaves_nothing_in_the_store(sensor: Client, broker: MemoryBroker) -> None:
    fill(sensor)
    broker.commit()
    assert {entity.kind for entity in durable_entities(broker)} >= {"session", "subscription", "handshake", "queue"}
    sensor.leave()
    broker.advance(60)
    broker.commit()
    assert durable_entities(broker) == []
    assert broker.store.held_ids == frozenset()


def test_deleting_a_virtual_host_leaves_nothing_of_its_sessions_in_the_store(broker: MemoryBroker) -> None:
    vhost = broker.kernel.declare_vhost("other")
    broker.vhost, default = vhost, broker.vhost
    client = Client(broker)
    client.connect()
    fill(client)
    client.leave()
    broker.vhost = default
    broker.kernel.delete_vhost("other")
    broker.commit()
    assert durable_entities(broker) == []
    assert broker.store.held_ids == frozenset()
    broker.advance(1000)
    assert list(broker.crashed().kernel.vhost_by_name) == ["/"]


def test_a_delivery_requeued_after_its_session_ended_is_removed(sensor: Client, broker: MemoryBroker) -> None:
    queue = sensor.subscribe("t")
    publish_to_topic(broker, "t")
    recipient = Recipient()
    recipient.consume(queue)
    sensor.leave()
    broker.advance(60)
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    broker.commit()
    assert broker.store.held_ids == frozenset()


# ---- Limits ----------------------------------------------------------------------------------------------------------


def test_the_number_of_sessions_per_user_is_limited(broker: MemoryBroker) -> None:
    sessions = broker.vhost.sessions
    sessions.max_per_user = 2
    clients = [Client(broker, name) for name in "abc"]
    for client in clients[:2]:
        sessions.open(client.client_id, False, 60, client, "anna")
    with pytest.raises(NotAllowed, match="user 'anna' has 2 sessions in vhost '/'"):
        sessions.open("c", False, 60, clients[2], "anna")
    sessions.open("c", False, 60, clients[2], "bert")
    sessions.open("a", True, 60, clients[0], "anna")
    sessions.expel(clients[1].session, "over")
    sessions.open("d", False, 60, Client(broker, "d"), "anna")
    assert sorted(session.client_id for session in sessions) == ["a", "c", "d"]


def test_sessions_are_counted_by_user_after_a_restart(broker: MemoryBroker) -> None:
    for name in "ab":
        broker.vhost.sessions.open(name, False, 60, Client(broker, name), "anna")
    broker.commit()
    again = broker.crashed()
    again.vhost.sessions.max_per_user = 2
    with pytest.raises(NotAllowed):
        again.vhost.sessions.open("c", False, 60, Client(again, "c"), "anna")
