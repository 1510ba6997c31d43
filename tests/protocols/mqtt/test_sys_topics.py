"""The ``$SYS/broker`` topics: their values, their subscribers, and their permissions."""

from collections.abc import Iterable

import pytest

from gateway.kernel.journal.records.access import TopicPermissionRecord
from gateway.testing import Recipient
from gateway_mqtt.sys_topics import PREFIX, SysTopics
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import Will

#: The topics of Mosquitto 2.0, and ``messages/inflight`` from its manual.
TOPICS = """
    version uptime
    clients/total clients/maximum clients/connected clients/active clients/disconnected clients/inactive
    clients/expired
    messages/stored messages/received messages/sent messages/inflight
    store/messages/count store/messages/bytes
    subscriptions/count shared_subscriptions/count
    heap/current heap/maximum
    bytes/received bytes/sent
    publish/bytes/received publish/bytes/sent
    publish/messages/received publish/messages/sent publish/messages/dropped
"""
LOADS = """
    messages/received messages/sent publish/received publish/sent publish/dropped bytes/received bytes/sent
    sockets connections
"""

MEMORY = 1000


class Node:
    """A gateway that updates its ``$SYS`` topics when the test calls it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.memory = MEMORY
        settings = gateway.settings
        self.topics = SysTopics(
            gateway.broker, settings.meter, settings.exchange, "gateway version 1", lambda: self.memory
        )
        self.update()

    def update(self, after_s: float = 0) -> None:
        """Advance the clock and update the topics."""
        self.gateway.advance(after_s)
        for _ in self.topics.update():
            pass
        self.gateway.settle()

    def value(self, name: str) -> str:
        """Return the value that a new subscriber would receive."""
        kept = self.gateway.vhost.retained.get((PREFIX + name).replace("/", "."))
        assert kept is not None, f"{name} has no value"
        return kept.message.body.decode()


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


@pytest.fixture
def node(gateway: Gateway) -> Node:
    return Node(gateway)


def topics_in(lines: Iterable[str]) -> set[str]:
    """Return the topics of these publishes."""
    return {word for line in lines for word in line.split() if word.startswith("$SYS")}


def listening(node: Node, filter: str = "$SYS/#", client_id: str = "curious", **options: int) -> Client:
    """Return a client that has subscribed and read the retained values."""
    client = node.gateway.client(client_id, **options)
    client.subscribe(filter)
    return client


# ---- Values ----------------------------------------------------------------------------------------------------------


def test_all_topics_of_mosquitto_are_retained_for_a_new_subscriber(node: Node) -> None:
    expected = {PREFIX + name for name in TOPICS.split()} | {PREFIX + "retained messages/count"}
    expected |= {f"{PREFIX}load/{name}/{span}" for name in LOADS.split() for span in ("1min", "5min", "15min")}
    kept = {each.message.routing_key.replace(".", "/") for each in node.gateway.vhost.retained}
    assert kept == expected


def test_a_new_subscriber_gets_the_values_at_once_as_retained(node: Node) -> None:
    client = node.gateway.client("curious")
    assert client.subscribe("$SYS/broker/version") == [
        "SUBACK #1 0",
        "PUBLISH retain $SYS/broker/version 'gateway version 1'",
    ]


def test_uptime_is_in_whole_seconds(node: Node) -> None:
    assert node.value("uptime") == "0 seconds"
    node.update(after_s=12.7)
    assert node.value("uptime") == "12 seconds"


def test_clients_are_counted_by_their_sessions(node: Node) -> None:
    kept = node.gateway.client("kept", expiry=60)
    gone = node.gateway.client("gone")
    kept.lose()
    node.update(after_s=10)
    counts = {name: node.value(f"clients/{name}") for name in ("total", "connected", "disconnected", "maximum")}
    assert counts == {"total": "2", "connected": "1", "disconnected": "1", "maximum": "2"}
    gone.lose()
    node.update(after_s=60)
    counts = {name: node.value(f"clients/{name}") for name in ("total", "connected", "expired", "maximum")}
    assert counts == {"total": "0", "connected": "0", "expired": "1", "maximum": "2"}
    assert (node.value("clients/active"), node.value("clients/inactive")) == ("0", "0")


def test_a_session_that_is_taken_over_is_counted_once(node: Node) -> None:
    node.gateway.client("twice", expiry=60)
    node.gateway.client("twice", expiry=60)
    node.update(after_s=10)
    assert (node.value("clients/connected"), node.value("clients/maximum")) == ("1", "1")


def test_shared_subscriptions_are_counted_separately(node: Node) -> None:
    client = node.gateway.client("client")
    for filter in ("a", "b/#", "$share/g/a", "$share/g/c"):
        client.subscribe(filter)
    client.unsubscribe("$share/g/c")
    node.update(after_s=10)
    assert (node.value("subscriptions/count"), node.value("shared_subscriptions/count")) == ("2", "1")


def test_stored_messages_are_queued_and_retained_ones_without_the_sys_topics(node: Node) -> None:
    keeper = node.gateway.client("keeper", expiry=60)
    keeper.subscribe("t", 1)
    keeper.lose()
    publisher = node.gateway.client("publisher")
    publisher.publish("t", b"12345", qos=1, id=1)
    publisher.publish("u", b"678", retain=True)
    node.update(after_s=10)
    assert (node.value("store/messages/count"), node.value("messages/stored")) == ("2", "2")
    assert (node.value("store/messages/bytes"), node.value("retained messages/count")) == ("8", "1")


def test_inflight_messages_are_unacknowledged_ones(node: Node) -> None:
    client = node.gateway.client("client")
    client.subscribe("t", 1)
    client.publish("t", qos=1, id=1)
    node.update(after_s=10)
    assert node.value("messages/inflight") == "1"
    client.puback(1)
    node.update(after_s=10)
    assert node.value("messages/inflight") == "0"


def test_dropped_messages_of_a_deleted_full_queue_stay_counted() -> None:
    node = Node(Gateway())
    node.gateway.vhost.sessions.limits = {0: {"x-max-length": 2}, 1: {"x-max-length": 2}}
    keeper = node.gateway.client("keeper", expiry=60)
    keeper.subscribe("t", 1)
    keeper.lose()
    publisher = node.gateway.client("publisher")
    for id in range(1, 6):
        publisher.publish("t", qos=1, id=id)
    node.update(after_s=10)
    assert node.value("publish/messages/dropped") == "3"
    assert node.value("load/publish/dropped/1min") == "2.76"
    node.update(after_s=60)
    assert (node.value("clients/expired"), node.value("publish/messages/dropped")) == ("1", "3")


def test_dropped_messages_stay_counted_when_an_operator_deletes_the_queue(node: Node) -> None:
    vhost = node.gateway.vhost
    vhost.sessions.limits = {0: {}, 1: {"x-max-length": 1}}
    keeper = node.gateway.client("keeper", expiry=600)
    for filter, qos in (("t", 1), ("u", 0)):
        keeper.subscribe(filter, qos)
    keeper.lose()
    publisher = node.gateway.client("publisher")
    for id in (1, 2):
        publisher.publish("t", qos=1, id=id)
    node.update(after_s=10)
    vhost.delete_queue(vhost.queue("mqtt-subscription-keeperqos1"))
    node.update(after_s=10)
    assert node.value("publish/messages/dropped") == "1"


def test_the_maximum_of_the_memory_is_kept(node: Node) -> None:
    node.memory = 3000
    node.update(after_s=10)
    node.memory = 2000
    node.update(after_s=10)
    assert (node.value("heap/current"), node.value("heap/maximum")) == ("2000", "3000")


def test_load_values_are_averages_per_minute(node: Node) -> None:
    node.gateway.settings.meter.sockets += 100
    node.update(after_s=10)
    assert [node.value(f"load/sockets/{span}") for span in ("1min", "5min", "15min")] == ["92.11", "19.67", "6.63"]
    node.update(after_s=60)
    assert node.value("load/sockets/1min") == "33.89"


def test_an_update_at_the_start_does_not_divide_by_zero(node: Node) -> None:
    assert node.value("load/connections/1min") == "0.00"


# ---- Subscribers -----------------------------------------------------------------------------------------------------


def test_a_subscriber_receives_changed_values_only(node: Node) -> None:
    client = listening(node, "$SYS/broker/+")
    node.update(after_s=10)
    assert client.receive() == ["PUBLISH $SYS/broker/uptime '10 seconds'"]


def test_a_leading_wildcard_does_not_match(node: Node) -> None:
    everything, levels = listening(node, "#", "all"), listening(node, "+/broker/uptime", "levels")
    assert everything.subscribe("+/broker/#") == ["SUBACK #1 0"]
    node.update(after_s=10)
    assert (everything.receive(), levels.receive()) == ([], [])


def test_a_subscriber_to_all_topics_and_to_sys_receives_each_value_once(node: Node) -> None:
    client = listening(node, "#")
    client.subscribe("$SYS/broker/uptime", 1)
    client.subscribe("$SYS/broker/#", 0)
    node.update(after_s=10)
    assert [line for line in client.receive() if "uptime" in line] == ["PUBLISH $SYS/broker/uptime '10 seconds'"]


def test_amqp_consumers_do_not_receive_the_values(node: Node) -> None:
    vhost = node.gateway.vhost
    queue = vhost.declare_queue("all")
    for key in ("#", "$SYS.#", "$SYS.broker.uptime"):
        vhost.bind(vhost.exchange("amq.topic"), queue, key)
    recipient = Recipient()
    recipient.consume(queue)
    listening(node)
    node.update(after_s=10)
    assert recipient.bodies == []


def test_a_shared_subscription_does_not_receive_the_values_as_with_mosquitto(node: Node) -> None:
    member = listening(node, "$share/g/$SYS/broker/uptime")
    node.update(after_s=10)
    assert member.receive() == []


def test_a_client_that_unsubscribed_receives_no_more_values(node: Node) -> None:
    client = listening(node)
    client.unsubscribe("$SYS/#")
    node.update(after_s=10)
    assert client.receive() == []


def test_a_client_that_reconnects_receives_new_values_only(node: Node) -> None:
    listening(node, "$SYS/broker/uptime", expiry=600).lose()
    for _ in range(3):
        node.update(after_s=10)
    back = node.gateway.client("curious", is_clean=False, expiry=600)
    assert back.backlog == []
    node.update(after_s=10)
    assert back.receive() == ["PUBLISH $SYS/broker/uptime '40 seconds'"]


def test_a_client_that_subscribes_after_a_restart_receives_the_values_of_the_new_broker(node: Node) -> None:
    node.update(after_s=100)
    reborn = Node(node.gateway.crashed())
    client = reborn.gateway.client("curious")
    assert client.subscribe("$SYS/broker/uptime")[1:] == ["PUBLISH retain $SYS/broker/uptime '0 seconds'"]


def test_a_restart_does_not_restore_the_values(node: Node) -> None:
    assert list(node.gateway.crashed().vhost.retained) == []


def test_a_virtual_host_created_later_has_the_topics_too(node: Node) -> None:
    later = node.gateway.broker.declare_vhost("later")
    node.update(after_s=10)
    uptime = later.retained.get("$SYS.broker.uptime")
    assert uptime is not None
    assert uptime.message.body == b"10 seconds"


def test_a_virtual_host_may_be_deleted_during_an_update(node: Node) -> None:
    node.gateway.broker.declare_vhost("brief")
    steps = node.topics.update()
    next(steps)
    node.gateway.broker.delete_vhost("brief")
    for _ in steps:
        pass
    assert list(node.gateway.broker.vhost_by_name) == ["/"]


# ---- Permissions -----------------------------------------------------------------------------------------------------


def test_a_subscription_without_permission_is_refused(node: Node) -> None:
    node.gateway.add_user("bob", "bob")
    node.gateway.broker.directory.put_topic_permission(
        TopicPermissionRecord("/", "bob", "amq.topic", ".*", r"^(?!\$SYS)")
    )
    bob = node.gateway.client("bob", username="bob", password=b"bob")
    assert bob.subscribe("$SYS/#") == ["SUBACK #1 87"]
    assert bob.subscribe("t") == ["SUBACK #1 0"]
    node.update(after_s=10)
    assert bob.receive() == []


@pytest.mark.parametrize("topic", ["$SYS/broker/uptime", "$SYS/mine", "$SYS"])
def test_no_client_can_publish_to_the_topics(node: Node, topic: str) -> None:
    publisher = node.gateway.client("publisher")
    assert publisher.publish(topic, qos=1, id=1) == ["PUBACK #1 NOT_AUTHORIZED"]
    assert publisher.publish(topic) == ["DISCONNECT NOT_AUTHORIZED", "closed"]


@pytest.mark.parametrize("topic", ["$SYS/broker/uptime", "$SYS.broker.uptime", "$SYS.broker/uptime"])
def test_no_client_can_retain_such_a_topic_with_the_mapping_of_rabbitmq(topic: str) -> None:
    node = Node(Gateway(lossy_vhosts=frozenset({"/"})))
    client = listening(node)
    publisher = node.gateway.client("publisher", will=Will(topic, b"forged", retain=True))
    assert publisher.publish(topic, b"forged", qos=1, id=1, retain=True) == ["PUBACK #1 NOT_AUTHORIZED"]
    publisher.lose()
    assert client.receive() == []
    assert node.value("uptime") == "0 seconds"


def test_a_refused_publish_is_acknowledged_with_a_reason_if_the_connection_stays() -> None:
    node = Node(Gateway(disconnect_on_unauthorized=False))
    publisher = node.gateway.client("publisher")
    assert publisher.publish("$SYS/mine", qos=1, id=1) == ["PUBACK #1 NOT_AUTHORIZED"]
    assert publisher.publish("$SYS/mine", qos=2, id=2) == ["PUBREC #2 NOT_AUTHORIZED"]
    assert publisher.publish("$SYS/broker/uptime", b"forged", retain=True) == []
    assert node.value("uptime") == "0 seconds"


def test_a_will_to_such_a_topic_is_not_published(node: Node) -> None:
    client = listening(node)
    node.gateway.client("mortal", will=Will("$SYS/broker/uptime", b"forged", retain=True)).lose()
    assert client.receive() == []
    assert node.value("uptime") == "0 seconds"
