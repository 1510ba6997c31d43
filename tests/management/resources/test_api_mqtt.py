"""MQTT over HTTP: connections and consumers as in RabbitMQ, sessions and retained messages."""

from typing import Any

import pytest

from gateway.access import Access
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.server import MqttServer
from tests.conformance.mqtt.edge import transport
from tests.management.console import Console
from tests.protocols.mqtt.packets import FIVE, Writer, packet, reason_string, session_expiry

MISSING = (404, {"error": "Object Not Found", "reason": "Not Found"})
REFUSED = (401, {"error": "not_authorised", "reason": "Access refused."})


class Client:
    """An MQTT 5.0 client of the console's gateway, with all layers but the socket."""

    def __init__(self, console: Console, client_id: str, *, write: Writer = FIVE, expiry_s: int = 0) -> None:
        gateway = console.gateway
        self._gateway = gateway
        self._transport: Any = transport()
        access: Access = gateway.settings.login
        settings = MqttContext(
            gateway.broker, LoginRules(gateway.broker, lambda vhost: access), lambda vhost: access, lambda: "token"
        )
        self._server = MqttServer(settings, gateway.turn)
        self._server.makeConnection(self._transport)  # type: ignore[no-untyped-call]  # Twisted's
        self.send(write.connect(client_id, keep_alive=40, properties=session_expiry(expiry_s)))

    def send(self, *packets: bytes) -> bytes:
        """Send packets; return what is received."""
        self._server.dataReceived(b"".join(packets))
        self._gateway.settle()
        return self.received()

    def received(self) -> bytes:
        """Return the bytes received since the last call."""
        received: bytes = self._transport.value()
        self._transport.clear()
        return received

    def lose(self) -> None:
        self._server.connectionLost()
        self._gateway.settle()


@pytest.fixture
def sensor(console: Console) -> Client:
    """A client with two subscriptions and a session expiry of one minute."""
    client = Client(console, "sensor", expiry_s=60)
    client.send(FIVE.subscribe(("house/+", 1), ("$share/g/house/#", 2)))
    return client


def disconnect(reason: str) -> bytes:
    """Return a DISCONNECT for the operator's reason."""
    text = reason_string(reason)
    return packet(0xE0, b"\x98" + bytes((len(text),)) + text)


# ---- Connections and consumers ---------------------------------------------------------------------------------------


def test_a_connection_has_the_fields_of_rabbitmq(console: Console, sensor: Client) -> None:
    (shown,) = console.get("/connections")
    expected = {
        "protocol": "MQTT 5-0",
        "client_properties": {"client_id": "sensor", "product": "MQTT client"},
        "variable_map": {"client_id": "sensor"},
        "channels": 0,
        "channel_max": 0,
        "frame_max": 0,
        "timeout": 40,
        "user": "guest",
        "vhost": "/",
        "type": "network",
        "state": "running",
    }
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.parametrize(("version", "protocol"), [(3, "MQTT 3-1"), (4, "MQTT 3-1-1")])
def test_versions_are_named_as_in_rabbitmq(console: Console, version: int, protocol: str) -> None:
    Client(console, "old", write=Writer(version))
    assert [each["protocol"] for each in console.get("/connections")] == [protocol]


def test_a_connection_of_another_protocol_has_no_variables(console: Console) -> None:
    console.gateway.connect()
    assert "variable_map" not in console.get("/connections")[0]


def test_mqtt_connections_have_no_channels(console: Console, sensor: Client) -> None:
    assert console.get("/channels") == []
    name = console.get("/connections")[0]["name"].replace(" ", "%20")
    assert console.get(f"/connections/{name}/channels") == []


def test_the_channel_details_of_a_consumer_name_its_connection(console: Console, sensor: Client) -> None:
    connection = console.get("/connections")[0]["name"]
    details = {each["queue"]["name"]: each["channel_details"] for each in console.get("/consumers")}
    assert set(details) == {"mqtt-subscription-sensorqos1", "mqtt-shared-g-house.#"}
    for each in details.values():
        assert (each["name"], each["connection_name"], each["number"]) == (connection, connection, 0)


def test_a_connection_is_closed(console: Console, sensor: Client) -> None:
    name = console.get("/connections")[0]["name"].replace(" ", "%20")
    console.delete(f"/connections/{name}")
    assert sensor.received() == disconnect("Closed via management plugin")
    assert console.gateway.vhost.sessions.connected == 0


# ---- Sessions --------------------------------------------------------------------------------------------------------

SENSOR = {
    "client_id": "sensor",
    "vhost": "/",
    "user": "guest",
    "connected": True,
    "durable": True,
    "expiry_s": 60,
    "subscriptions": 2,
    "queues": ["mqtt-subscription-sensorqos1", "mqtt-shared-g-house.#"],
    "messages_ready": 0,
    "messages_unacknowledged": 0,
}


@pytest.mark.parametrize("path", ["/mqtt/sessions", "/mqtt/sessions/%2F"])
def test_sessions_are_listed(console: Console, sensor: Client, path: str) -> None:
    assert console.get(path) == [SENSOR]


def test_a_session_shows_its_messages(console: Console, sensor: Client) -> None:
    sensor.send(FIVE.publish("house/roof", qos=1, id=1))
    assert console.get("/mqtt/sessions")[0]["messages_unacknowledged"] == 1
    sensor.lose()
    Client(console, "other").send(FIVE.publish("house/attic", qos=1, id=1))
    (shown,) = console.get("/mqtt/sessions/%2F?name=sens&page=1")["items"]
    assert (shown["connected"], shown["messages_ready"], shown["messages_unacknowledged"]) == (False, 2, 0)


def test_a_session_shows_its_subscriptions(console: Console, sensor: Client) -> None:
    shown = console.get("/mqtt/sessions/%2F/sensor")
    assert {name: shown[name] for name in SENSOR} == SENSOR
    assert [(each["filter"], each["qos"], each["queue"]) for each in shown["subscription_details"]] == [
        ("house/+", 1, "mqtt-subscription-sensorqos1"),
        ("$share/g/house/#", 2, "mqtt-shared-g-house.#"),
    ]


def test_the_expiry_of_a_session_that_never_expires_is_null(console: Console) -> None:
    client = Client(console, "eternal")
    session = console.gateway.vhost.sessions.get("eternal")
    assert session is not None
    session.expiry_s = 0xFFFFFFFF
    assert console.get("/mqtt/sessions/%2F/eternal")["expiry_s"] is None
    client.lose()


def test_a_session_is_ended_with_its_connection(console: Console, sensor: Client) -> None:
    console.delete("/mqtt/sessions/%2F/sensor")
    assert sensor.received() == disconnect("Session ended via management plugin")
    assert console.get("/mqtt/sessions") == []
    assert console.get("/queues") == []
    assert console.ask("DELETE", "/mqtt/sessions/%2F/sensor").result == MISSING


def test_a_session_without_a_connection_is_ended(console: Console, sensor: Client) -> None:
    sensor.lose()
    console.delete("/mqtt/sessions/%2F/sensor")
    assert console.get("/mqtt/sessions") == []


def test_ending_a_session_needs_the_permission_to_delete_its_queues(console: Console, sensor: Client) -> None:
    console.add_user("bob", "management")
    may = console.gateway.broker.directory.put_permission
    may(PermissionRecord("/", "bob", "^mqtt-subscription-sensorqos1$", ".*", ".*"))
    sensor.lose()
    assert console.ask("DELETE", "/mqtt/sessions/%2F/sensor", user="bob").result == REFUSED
    assert not console.get("/mqtt/sessions/%2F/sensor", user="bob")["may_end"]
    may(PermissionRecord("/", "bob", "^mqtt-subscription-sensorqos", ".*", ".*"))
    assert console.get("/mqtt/sessions/%2F/sensor", user="bob")["may_end"]
    assert console.ask("DELETE", "/mqtt/sessions/%2F/sensor", user="bob").status == 204


def test_only_an_administrator_ends_the_session_of_a_connected_client(console: Console, sensor: Client) -> None:
    console.add_user("bob", "management")
    assert console.ask("DELETE", "/mqtt/sessions/%2F/sensor", user="bob").status == 401
    assert not console.get("/mqtt/sessions/%2F/sensor", user="bob")["may_end"]
    assert console.get("/mqtt/sessions/%2F/sensor").items() >= {"connected": True, "may_end": True}.items()


def test_sessions_are_visible_only_with_access_to_their_virtual_host(console: Console, sensor: Client) -> None:
    console.put("/vhosts/other", {})
    console.add_user("eve", "management", vhost="other")
    assert console.get("/mqtt/sessions", user="eve") == []
    assert console.ask("GET", "/mqtt/sessions/%2F", user="eve").status == 401
    assert console.ask("GET", "/mqtt/retained/%2F", user="eve").status == 401


def test_pruning_definitions_keeps_the_queues_of_sessions(console: Console, sensor: Client) -> None:
    console.put("/queues/%2F/mqtt-subscription-goneqos1", {"durable": True})
    steps = console.post("/definitions-plan?prune=true", {"queues": [], "bindings": []})["steps"]
    assert [(step["category"], step["name"]) for step in steps] == [("queues", "mqtt-subscription-goneqos1")]
    console.post("/definitions-apply?prune=true", {"queues": [], "bindings": []})
    assert console.get("/mqtt/sessions/%2F/sensor")["subscriptions"] == 2
    assert len(console.get("/queues")) == 2


def test_an_unknown_session_is_not_found(console: Console) -> None:
    assert console.ask("GET", "/mqtt/sessions/%2F/absent").result == MISSING
    assert console.ask("GET", "/mqtt/sessions/nowhere").result == MISSING


# ---- Retained messages -----------------------------------------------------------------------------------------------


@pytest.fixture
def retaining_console(console: Console) -> Console:
    """A console of a gateway with two retained messages of clients and one of the broker."""
    publisher = Client(console, "publisher")
    publisher.send(
        FIVE.publish("house/attic", b"12345", retain=True),
        FIVE.publish("house/1.5", b"678", retain=True, properties=b"\x02\x00\x00\x00\x3c"),
    )
    (kept,) = (each for each in console.gateway.vhost.retained if each.message.body == b"678")
    retained = console.gateway.vhost.retained
    retained.keep_transient(type(kept.message)("amq.topic", "$SYS.uptime", kept.message.header, b"0 seconds"))
    return console


def test_retained_messages_of_clients_are_listed_by_topic(retaining_console: Console) -> None:
    assert retaining_console.get("/mqtt/retained/%2F") == [
        {
            "topic": "house/1.5",
            "vhost": "/",
            "exchange": "amq.topic",
            "routing_key": "house.1%2E5",
            "payload_bytes": 3,
            "expires_at": "2023-11-14T22:14:20.000+00:00",
            "may_delete": True,
        },
        {
            "topic": "house/attic",
            "vhost": "/",
            "exchange": "amq.topic",
            "routing_key": "house.attic",
            "payload_bytes": 5,
            "expires_at": None,
            "may_delete": True,
        },
    ]


def test_a_retained_message_is_shown_and_deleted(retaining_console: Console) -> None:
    path = "/mqtt/retained/%2F/house%2F1.5"
    assert retaining_console.get(path)["payload_bytes"] == 3
    retaining_console.delete(path)
    assert retaining_console.ask("GET", path).result == MISSING
    assert retaining_console.ask("DELETE", path).result == MISSING


def test_retained_messages_of_the_broker_cannot_be_deleted(retaining_console: Console) -> None:
    assert retaining_console.ask("DELETE", "/mqtt/retained/%2F/$SYS%2Fuptime").result == MISSING
    assert retaining_console.gateway.vhost.retained.get("$SYS.uptime") is not None


def test_deleting_a_retained_message_needs_the_permission_to_publish(retaining_console: Console) -> None:
    retaining_console.add_user("bob", "management")
    retaining_console.gateway.broker.directory.put_permission(PermissionRecord("/", "bob", ".*", "^$", ".*"))
    assert retaining_console.ask("DELETE", "/mqtt/retained/%2F/house%2Fattic", user="bob").result == REFUSED
    assert retaining_console.get("/mqtt/retained/%2F/house%2Fattic", user="bob")["may_delete"] is False
    allowed = (
        PermissionRecord("/", "bob", "", "^amq.topic$", ".*"),
        TopicPermissionRecord("/", "bob", "amq.topic", "attic$", ""),
    )
    retaining_console.gateway.broker.directory.put_permission(allowed[0])
    assert retaining_console.get("/mqtt/retained/%2F/house%2F1.5", user="bob")["may_delete"] is True
    retaining_console.gateway.broker.directory.put_topic_permission(allowed[1])
    assert retaining_console.ask("DELETE", "/mqtt/retained/%2F/house%2F1.5", user="bob").result == REFUSED
    assert retaining_console.ask("DELETE", "/mqtt/retained/%2F/house%2Fattic", user="bob").status == 204


def test_users_without_permissions_in_the_virtual_host_see_that_they_may_not_delete(
    retaining_console: Console, sensor: Client
) -> None:
    retaining_console.put("/users/watch", {"password": "watch", "tags": "monitoring"})
    assert retaining_console.get("/mqtt/retained/%2F/house%2Fattic", user="watch")["may_delete"] is False
    assert retaining_console.get("/mqtt/sessions/%2F/sensor", user="watch")["may_end"] is False


def test_retained_messages_are_visible_with_the_read_permission(retaining_console: Console) -> None:
    retaining_console.gateway.add_user("low", "low", "/", ("^low", "^low", "^low"), "management")
    retaining_console.gateway.add_user("reader", "reader", "/", ("^$", "^$", "^amq\\.topic$"), "management")
    directory = retaining_console.gateway.broker.directory
    directory.put_topic_permission(TopicPermissionRecord("/", "reader", "amq.topic", "^$", "attic$"))
    retaining_console.gateway.add_user("watch", "watch", "/", ("^$", "^$", "^$"), "monitoring")
    topics = {
        user: [each["topic"] for each in retaining_console.get("/mqtt/retained/%2F", user=user)]
        for user in ("low", "reader", "watch")
    }
    assert topics == {"low": [], "reader": ["house/attic"], "watch": ["house/1.5", "house/attic"]}
    assert retaining_console.ask("GET", "/mqtt/retained/%2F/house%2Fattic", user="low").result == REFUSED
    assert retaining_console.ask("GET", "/mqtt/retained/%2F/house%2F1.5", user="reader").result == REFUSED
    assert retaining_console.get("/mqtt/retained/%2F/house%2Fattic", user="reader")["topic"] == "house/attic"
