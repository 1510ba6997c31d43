"""The audit record of the topology that clients of each protocol create and delete (docs/audit.md)."""

from dataclasses import replace

import pytest
from pamqp import commands

from gateway.testing import FakeClock
from tests.protocols.amqp.frames import publish
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

AMQP, STOMP, MQTT = "AMQP", "STOMP", "MQTT"


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    """A broker that records the topology of all clients."""
    gateway = AllProtocolsBroker(clock=FakeClock())
    ask(gateway, topology=True, sessions=True)
    return gateway


def ask(gateway: AllProtocolsBroker, *, topology: bool, sessions: bool) -> None:
    audit = gateway.broker.audit
    audit.rules = replace(audit.rules, client_topology=topology, client_sessions=sessions)


def recorded(gateway: AllProtocolsBroker) -> list[tuple[str, str, str, str]]:
    """Return surface, user, action and subject of the entries, oldest first."""
    entries = [(each.surface, each.user, each.action, each.subject) for each in gateway.broker.audit.newest_first()]
    return entries[::-1]


def test_a_purge_by_an_amqp_client_is_recorded_with_the_number_of_messages(gateway: AllProtocolsBroker) -> None:
    gateway.vhost.declare_queue("q", is_durable=True)
    peer = gateway.peer()
    peer.send(publish("", "q", b"a"), publish("", "q", b"b"), commands.Queue.Purge(0, "q")).receive()
    (entry,) = gateway.broker.audit.newest_first()
    assert (entry.surface, entry.user, entry.action, entry.subject) == (AMQP, "guest", "queue.purged", "q")
    assert (entry.details, entry.after, entry.address) == ({"messages": 2}, None, peer.peer_host)


def test_queues_and_bindings_of_stomp_clients_are_recorded(gateway: AllProtocolsBroker) -> None:
    client = gateway.stomp()
    client.subscribe("/queue/orders")
    client.subscribe("/topic/news", "1", durable="true", **{"auto-delete": "false"})
    client.command("UNSUBSCRIBE", {"id": "1", "durable": "true"})
    durable = recorded(gateway)[1][3]
    assert recorded(gateway) == [
        (STOMP, "guest", "queue.created", "orders"),
        (STOMP, "guest", "queue.created", durable),
        (STOMP, "guest", "binding.created", durable),
        (STOMP, "guest", "binding.deleted", durable),
        (STOMP, "guest", "queue.deleted", durable),
    ]


def test_queues_and_bindings_of_mqtt_sessions_are_recorded(gateway: AllProtocolsBroker) -> None:
    client = gateway.client("sensor", expiry=600)
    client.subscribe("a", 1)
    client.unsubscribe("a")
    queue = "mqtt-subscription-sensorqos1"
    assert recorded(gateway) == [
        (MQTT, "guest", "queue.created", queue),
        (MQTT, "guest", "binding.created", queue),
        (MQTT, "guest", "binding.deleted", queue),
    ]


@pytest.mark.parametrize(
    ("topology", "sessions", "surfaces"),
    [(False, False, []), (True, False, [AMQP, STOMP]), (False, True, [MQTT])],
    ids=["neither", "topology", "sessions"],
)
def test_each_setting_records_its_clients_only(
    gateway: AllProtocolsBroker, topology: bool, sessions: bool, surfaces: list[str]
) -> None:
    ask(gateway, topology=topology, sessions=sessions)
    gateway.peer().send(commands.Exchange.Declare(0, "e")).receive()
    gateway.stomp().subscribe("/queue/orders")
    gateway.client("sensor").subscribe("a", 0)
    assert list(dict.fromkeys(surface for surface, *_ in recorded(gateway))) == surfaces


def test_a_deletion_that_takes_several_turns_is_recorded_to_its_end(gateway: AllProtocolsBroker) -> None:
    queue, source = gateway.vhost.declare_queue("q", is_durable=True), gateway.vhost.exchange("amq.direct")
    for number in range(2000):
        gateway.vhost.bind(source, queue, str(number))
    gateway.peer().send(commands.Queue.Delete(0, "q")).receive()
    gateway.clock.advance(1)
    gateway.settle()
    assert recorded(gateway)[-1] == (AMQP, "guest", "queue.deleted", "q")
    assert len(recorded(gateway)) == 2001


def test_queues_that_the_broker_deletes_by_itself_are_not_recorded(gateway: AllProtocolsBroker) -> None:
    peer = gateway.peer()
    peer.send(
        commands.Queue.Declare(0, "auto", auto_delete=True),
        commands.Queue.Declare(0, "own", exclusive=True),
        commands.Basic.Consume(0, "auto", "c"),
        commands.Basic.Cancel("c"),
    ).receive()
    peer.lose()
    assert [name for name in ("auto", "own") if name in gateway.vhost.queue_by_name] == []
    assert [action for _, _, action, subject in recorded(gateway) if subject in ("auto", "own")] == [
        "queue.created"
    ] * 2


def test_events_of_queues_that_the_broker_deletes_by_itself_have_no_user(gateway: AllProtocolsBroker) -> None:
    user_by_event: dict[tuple[str, str], str] = {}
    gateway.broker.events.subscribe(lambda event: user_by_event.update({(event.name, event.subject): event.user}))
    peer = gateway.peer()
    peer.send(
        commands.Queue.Declare(0, "auto", auto_delete=True),
        commands.Queue.Declare(0, "q"),
        commands.Basic.Consume(0, "auto", "c"),
        commands.Basic.Cancel("c"),
        commands.Queue.Delete(0, "q"),
    ).receive()
    assert user_by_event["queue.deleted", "auto"] == ""
    assert user_by_event["queue.deleted", "q"] == "guest"
