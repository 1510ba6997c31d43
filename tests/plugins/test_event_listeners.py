"""Event listeners of plugins, and the event exchange."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pamqp import commands

from gateway.api import Event, EventListener, NotFound, Value
from gateway.kernel.acting import NamedUser
from gateway.kernel.alarms import Resource
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.plugins.registry import load_plugins
from gateway.testing import MemoryBroker, Recipient
from gateway_tracing.event_exchange import EXCHANGE, headers_of
from tests.management.console import Console
from tests.plugins.test_plugin_docs import examples
from tests.scenarios.all_protocols_broker import AllProtocolsBroker


class Recording(EventListener):
    def __init__(self, *, all_vhosts: bool = False) -> None:
        self.all_vhosts = all_vhosts
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def named(self, name: str) -> Event:
        (found,) = [event for event in self.events if event.name == name]
        return found


class Failing(EventListener):
    def on_event(self, event: Event) -> None:
        raise RuntimeError("broken")


def listen(broker: Any, *listeners: EventListener, vhost: str = "/") -> None:
    broker.plugins_in_use.event_listeners.use(vhost, listeners)


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    return AllProtocolsBroker()


# Which events there are


def test_connections_channels_and_logins_of_amqp_are_reported(gateway: AllProtocolsBroker) -> None:
    recording = Recording()
    listen(gateway.broker, recording)
    peer = gateway.peer()
    peer.send(commands.Channel.Close(200, "bye", 0, 0)).receive()
    login = recording.named("user.authentication.success")
    assert (login.subject, login.details["protocol"], login.details["auth_mechanism"]) == ("guest", "amqp091", "PLAIN")
    assert login.details["connection_type"] == "network"
    created = recording.named("channel.created")
    assert (created.vhost, created.details["number"], created.details["user"]) == ("/", 1, "guest")
    assert recording.named("channel.closed").subject == created.subject


def test_failed_logins_are_reported_by_every_protocol(gateway: AllProtocolsBroker) -> None:
    recording = Recording()
    listen(gateway.broker, recording)
    gateway.new_client().connect("c", username="eve", password=b"wrong")
    gateway.advance(1)
    failure = recording.named("user.authentication.failure")
    assert (failure.subject, failure.details["protocol"]) == ("eve", "mqtt")


def test_logins_over_http_are_reported_with_the_name_and_the_address() -> None:
    console, recording = Console(), Recording()
    listen(console.gateway.broker, recording)
    console.get("/whoami")
    success = recording.named("user.authentication.success")
    assert (success.subject, success.details["peer_host"]) == ("guest", "127.0.0.1")
    console.ask("GET", "/whoami", user="eve")
    failure = recording.named("user.authentication.failure")
    assert (failure.subject, failure.details["protocol"], failure.details["peer_host"]) == ("eve", "http", "127.0.0.1")


def test_topology_users_permissions_and_alarms_are_reported() -> None:
    broker = MemoryBroker()
    recording = Recording()
    listen(broker.kernel, recording)
    vhost, directory = broker.vhost, broker.kernel.directory
    queue = vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 5}, user="guest")
    exchange = vhost.declare_exchange("x", "topic", is_durable=True)
    vhost.bind(exchange, queue, "a.*", {"n": 1})
    vhost.delete_queue(queue)
    directory.put_user(UserRecord("eve", "hash", "sha256", [], {}))
    directory.put_permission(PermissionRecord("/", "eve", "c", "w", "r"))
    directory.put_user(UserRecord("eve", "other", "sha256", ["monitoring"], {}))
    directory.remove_permission("/", "eve")
    directory.remove_user("eve")
    broker.kernel.alarms.set(Resource.MEMORY, True, "much")
    broker.kernel.alarms.set(Resource.MEMORY, False)
    assert recording.names == [
        "queue.created", "exchange.created", "binding.created", "binding.deleted", "queue.deleted", "user.created",
        "permission.created", "user.password.changed", "user.tags.set", "permission.deleted", "user.deleted",
        "alarm.set", "alarm.cleared",
    ]  # fmt: skip
    assert recording.named("queue.created").details == {
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "arguments": {"x-max-length": 5},
        "user": "guest",
    }
    assert recording.named("permission.created").details == {"configure": "c", "write": "w", "read": "r"}
    assert (recording.named("alarm.set").subject, recording.named("alarm.set").details) == (
        "memory",
        {"detail": "much"},
    )


def test_limits_topic_permissions_and_consumers_are_reported() -> None:
    broker = MemoryBroker()
    recording = Recording()
    listen(broker.kernel, recording)
    directory = broker.kernel.directory
    directory.put_user(UserRecord("eve", "hash", "sha256", [], {}))
    directory.put_topic_permission(TopicPermissionRecord("/", "eve", "amq.topic", "w", "r"))
    directory.put_user(UserRecord("eve", "", "sha256", [], {"max-connections": 5}))
    directory.put_user(UserRecord("eve", "", "sha256", [], {}))
    directory.remove_user("eve")
    broker.kernel.limit_vhost("/", {"max-queues": 5})
    broker.kernel.limit_vhost("/", {"max-queues": 5})
    broker.kernel.limit_vhost("/", {})
    recipient = Recipient()
    recipient.consume(broker.vhost.declare_queue("q"), tag="here")
    recipient.leave()
    assert recording.names == [
        "user.created", "topic.permission.created", "user.password.cleared", "user.limits.set", "user.limits.cleared",
        "topic.permission.deleted", "user.deleted", "vhost.limits.set", "vhost.limits.cleared", "queue.created",
        "consumer.created", "consumer.deleted",
    ]  # fmt: skip
    assert recording.named("topic.permission.created").details == {"exchange": "amq.topic", "write": "w", "read": "r"}
    assert recording.named("user.limits.set").details == {"max-connections": 5}
    assert recording.named("vhost.limits.set").details == {"max-queues": 5}
    consumer = recording.named("consumer.created")
    assert (consumer.subject, consumer.details["queue"], consumer.details["ack_required"]) == ("here", "q", True)


def test_policies_are_reported_with_their_definition() -> None:
    broker = MemoryBroker()
    recording = Recording()
    listen(broker.kernel, recording)
    for is_operator in (False, True):
        record = PolicyRecord("/", "p", is_operator, "^x", "queues", 1, {"max-length": 5})
        broker.kernel.put_policy(record)
        broker.kernel.remove_policy(record)
    assert recording.names == ["policy.set", "policy.cleared", "operator.policy.set", "operator.policy.cleared"]
    details = {"pattern": "^x", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}}
    assert recording.named("policy.set").details == details


# Who acted


def test_events_name_the_user_of_a_client_and_no_user_for_the_work_of_the_broker(gateway: AllProtocolsBroker) -> None:
    recording = Recording()
    listen(gateway.broker, recording)
    acting = gateway.broker.clock.background.acting
    with acting.being(NamedUser("ada")):
        gateway.vhost.declare_queue("q", arguments={"x-expires": 1000})
    gateway.advance(2)
    assert [(event.name, event.user) for event in recording.events] == [("queue.created", "ada"), ("queue.deleted", "")]


def test_a_long_job_acts_for_the_user_who_asked_for_it() -> None:
    broker = MemoryBroker()
    recording = Recording(all_vhosts=True)
    listen(broker.kernel, recording)
    with broker.kernel.clock.background.acting.being(NamedUser("ada")):
        broker.kernel.declare_vhost("gone")
        broker.kernel.delete_vhost("gone")
    broker.advance(1)
    assert recording.named("vhost.deleted").user == "ada"
    assert not broker.kernel.clock.background.acting.name


# Who gets them


def test_a_listener_gets_the_events_of_its_virtual_host_and_of_the_node_unless_it_asks_for_all() -> None:
    broker = MemoryBroker()
    own, everything = Recording(), Recording(all_vhosts=True)
    listen(broker.kernel, own, everything)
    other = broker.kernel.declare_vhost("other")
    other.declare_queue("q")
    broker.kernel.alarms.set(Resource.DISK, True)
    assert own.names == ["alarm.set"]
    assert everything.names == ["vhost.created", "queue.created", "alarm.set"]


def test_a_failing_listener_affects_neither_the_change_nor_other_listeners() -> None:
    broker = MemoryBroker()
    recording = Recording()
    listen(broker.kernel, Failing(), recording)
    broker.vhost.declare_queue("q")
    assert broker.vhost.queue("q").name == "q"
    assert recording.names == ["queue.created"]
    assert broker.kernel.faults.count_by_kind == {"plugin event listener": 1}


def test_the_listeners_of_a_deleted_virtual_host_get_no_more() -> None:
    broker = MemoryBroker()
    recording = Recording()
    broker.kernel.declare_vhost("other")
    listen(broker.kernel, recording, vhost="other")
    broker.kernel.delete_vhost("other")
    broker.advance(1)
    seen = len(recording.events)
    broker.kernel.alarms.set(Resource.DISK, True)
    assert len(recording.events) == seen


# The event exchange


def enabled(settings: dict[str, Value] | None = None) -> tuple[MemoryBroker, Recipient]:
    """Return a broker whose virtual host ``watched`` has the event exchange, and the consumer of all its messages."""
    broker = MemoryBroker()
    vhost = broker.kernel.declare_vhost("watched", plugins={"event-exchange": settings or {}})
    queue = vhost.declare_queue("events", is_durable=True)
    vhost.bind(vhost.exchange(EXCHANGE), queue, "#")
    recipient = Recipient()
    recipient.consume(queue)
    recipient.received.clear()
    return broker, recipient


def received(recipient: Recipient) -> Sequence[tuple[str, dict[str, Value]]]:
    return [(each.message.routing_key, dict(each.message.headers)) for each in recipient.received]


def test_an_event_is_a_message_with_its_name_as_key_and_its_details_as_headers() -> None:
    broker, recipient = enabled()
    vhost = broker.kernel.vhost("watched")
    queue = vhost.declare_queue("q", arguments={"x-max-length": 1})
    vhost.bind(vhost.exchange("amq.topic"), queue, "key")
    (key, headers), (binding_key, binding) = received(recipient)
    assert headers.pop("timestamp_in_ms")
    assert (key, headers) == (
        "queue.created",
        {
            "name": "q",
            "vhost": "watched",
            "node": "gateway@test",
            "durable": False,
            "auto_delete": False,
            "exclusive": False,
            "arguments": {"x-max-length": 1},
            "user": "",
            "user_who_performed_action": "rmq-internal",
        },
    )
    assert binding_key == "binding.created"
    assert [binding[name] for name in ("source_name", "source_kind", "destination_name", "destination_kind")] == [
        "amq.topic", "exchange", "q", "queue",
    ]  # fmt: skip
    message = recipient.received[0].message
    assert (message.body, message.properties.delivery_mode) == (b"", 2)
    assert message.properties.timestamp is not None


HEADERS = [
    (Event("permission.deleted", "/", "eve"), {"user": "eve"}),
    (Event("topic.permission.created", "/", "eve", {"exchange": "x"}), {"user": "eve", "exchange": "x"}),
    (Event("consumer.deleted", "/", "tag", {"queue": "q"}), {"consumer_tag": "tag", "queue": "q"}),
    (
        Event("user.limits.set", "", "eve", {"max-channels": 1}),
        {"name": "limits", "username": "eve", "max-channels": 1},
    ),
    (Event("parameter.set", "", "p", {"component": ""}), {"name": "p", "component": "global"}),
    (Event("exchange.deleted", "/", ""), {"name": ""}),
]


@pytest.mark.parametrize(("event", "headers"), HEADERS, ids=[event.name for event, _ in HEADERS])
def test_the_headers_are_those_of_rabbitmq(event: Event, headers: dict[str, Value]) -> None:
    vhost = {"vhost": event.vhost} if event.vhost else {}
    assert headers_of(replace(event, user="ada")) == {**vhost, **headers, "user_who_performed_action": "ada"}
    assert headers_of(event)["user_who_performed_action"] == "rmq-internal"


def test_the_events_of_other_virtual_hosts_come_on_request() -> None:
    for settings, expected in (({}, []), ({"all_vhosts": True}, ["queue.created"])):
        broker, recipient = enabled(dict(settings))
        broker.vhost.declare_queue("q")
        assert [key for key, _ in received(recipient)] == expected


def test_nothing_is_published_while_nothing_is_bound() -> None:
    broker = MemoryBroker()
    vhost = broker.kernel.declare_vhost("watched", plugins={"event-exchange": {}})
    vhost.declare_queue("q")
    assert vhost.traffic.published == 0
    assert vhost.exchange(EXCHANGE).is_internal


def test_bindings_to_the_event_exchange_survive_a_restart() -> None:
    broker, recipient = enabled()
    recipient.leave()
    broker.commit()
    again = broker.crashed()
    again.kernel.vhost("watched").declare_queue("q", is_durable=True)
    watcher = Recipient()
    watcher.consume(again.kernel.vhost("watched").queue("events"))
    assert "queue.created" in [key for key, _ in received(watcher)]


def test_a_virtual_host_without_the_plugin_has_no_event_exchange() -> None:
    with pytest.raises(NotFound):
        MemoryBroker().vhost.exchange(EXCHANGE)


def test_the_listener_of_the_page_counts_failures(tmp_path: Path) -> None:
    (tmp_path / "failures.py").write_text(examples("events.md")["failures.py"])
    broker = MemoryBroker(registry=load_plugins(tmp_path))
    vhost = broker.kernel.declare_vhost("watched", plugins={"failures": {}})
    queue = vhost.declare_queue("q")
    vhost.bind(vhost.exchange("amq.rabbitmq.failures"), queue, "#")
    recipient = Recipient()
    recipient.consume(queue)
    for _ in range(2):
        broker.kernel.connections.count_login("http", False, "eve")
    assert recipient.bodies == [b"1", b"2"]
