"""Queues of MQTT sessions and groups are ordinary queues: operators and clients of AMQP can use them."""

import pytest
from pamqp import commands

from gateway.kernel.journal.records.access import TopicPermissionRecord
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.mqtt.packets import Will, content_type, message_expiry, user_property
from tests.scenarios.all_protocols_broker import (
    AllProtocolsBroker,
    Client,
    all_of,
    fetched,
    key_of,
    own_queue,
    properties_of,
    published,
    queue,
)

NOT_AUTHORIZED = 0x87
UNSPECIFIED_ERROR = 0x80


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    return AllProtocolsBroker()


@pytest.fixture
def peer(gateway: AllProtocolsBroker) -> Peer:
    return gateway.peer()


@pytest.fixture
def sensor(gateway: AllProtocolsBroker) -> Client:
    return gateway.client("sensor")


def sleeping(gateway: AllProtocolsBroker, *filters: str, qos: int = 1) -> None:
    """Create a session whose client, ``sleeper``, has subscribed and disconnected."""
    client = gateway.client("sleeper", expiry=600)
    for filter in filters:
        client.subscribe(filter, qos)
    client.lose()


def woken(gateway: AllProtocolsBroker) -> list[str]:
    """Reconnect the sleeper; return the messages that waited."""
    return gateway.client("sleeper", is_clean=False, expiry=600).backlog


def consumed(peer: Peer, name: str) -> list[ReceivedFrame]:
    """Consume from a queue without acknowledgements; return the deliveries."""
    consumed_, *deliveries = peer.send(commands.Basic.Consume(0, name)).receive_frames()
    assert isinstance(consumed_.method, commands.Basic.ConsumeOk), str(consumed_)
    return deliveries


def death_of(received: ReceivedFrame) -> dict[str, object]:
    """Return the newest entry of ``x-death``."""
    deaths = received.headers["x-death"]
    assert isinstance(deaths, list)
    newest = deaths[0]
    assert isinstance(newest, dict)
    return newest


# A session's own queues


def test_a_session_is_two_queues(gateway: AllProtocolsBroker, peer: Peer) -> None:
    client = gateway.client("sleeper", expiry=600)
    client.subscribe("a", 0)
    client.subscribe("b", 1, id=2)
    client.subscribe("c", 2, id=3)
    for level in (0, 1):
        (declared,) = peer.send(commands.Queue.Declare(0, own_queue("sleeper", level), passive=True)).receive()
        assert "consumer_count=1" in declared
    topics = gateway.vhost.exchange("amq.topic")
    bound = {(binding.destination.name, binding.routing_key) for binding in gateway.vhost.bindings.of(topics)}
    assert bound == {(own_queue("sleeper", 0), "a"), (own_queue("sleeper"), "b"), (own_queue("sleeper"), "c")}


def test_session_messages_can_be_consumed_over_amqp(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    sleeping(gateway, "a/+")
    for number in range(3):
        sensor.publish(f"a/{number}", b"%d" % number, qos=1, id=1)
    first = fetched(peer, own_queue("sleeper"))
    assert (key_of(first), first.body) == ("a.0", b"0")
    assert woken(gateway) == ["PUBLISH q1 #1 a/1 '1'", "PUBLISH q1 #2 a/2 '2'"]


def test_a_consumer_of_amqp_competes_with_the_client(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    client = gateway.client("client", expiry=600)
    client.subscribe("a", 1)
    assert consumed(peer, own_queue("client")) == []
    for number in range(4):
        sensor.publish("a", b"%d" % number, qos=1, id=1)
    deliveries = peer.receive_frames()
    assert client.receive() == ["PUBLISH q1 #1 a '0'", "PUBLISH q1 #2 a '2'"]
    assert [received.body for received in deliveries] == [b"1", b"3"]
    peer.send(commands.Basic.Nack(1, multiple=False, requeue=True)).receive()
    assert client.receive() == ["PUBLISH q1 #3 dup a '1'"]


def test_the_queue_of_a_clean_session_is_exclusive(gateway: AllProtocolsBroker, peer: Peer) -> None:
    gateway.client("short").subscribe("a", 1)
    (refused,) = peer.send(commands.Basic.Get(0, own_queue("short"))).receive()
    assert refused.startswith("Channel.Close 405 RESOURCE_LOCKED")


def test_a_message_published_to_a_sessions_queue_by_name_is_delivered(gateway: AllProtocolsBroker, peer: Peer) -> None:
    client = gateway.client("client", expiry=600)
    client.subscribe("a", 1)
    name = own_queue("client")
    peer.send(published(name, b"by hand", exchange="", delivery_mode=2)).receive()
    assert client.receive() == [f"PUBLISH q1 #1 {name} 'by hand'"]


def test_a_binding_added_over_amqp_delivers_more_messages(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    client = gateway.client("client", expiry=600)
    client.subscribe("a", 1)
    peer.send(commands.Queue.Bind(0, own_queue("client"), "amq.topic", "extra.*")).receive()
    sensor.publish("extra/b", b"more", qos=1, id=1)
    assert client.receive() == ["PUBLISH q1 #1 extra/b 'more'"]


def test_a_deleted_session_queue_is_declared_again(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    sleeping(gateway, "a")
    peer.send(commands.Queue.Delete(0, own_queue("sleeper"))).receive()
    client = gateway.client("sleeper", is_clean=False, expiry=600)
    sensor.publish("a", b"back", qos=1, id=1)
    assert client.receive() == ["PUBLISH q1 #1 a 'back'"]


def test_a_purged_session_queue_delivers_nothing(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    sleeping(gateway, "a")
    sensor.publish("a", b"lost", qos=1, id=1)
    assert peer.send(commands.Queue.Purge(0, own_queue("sleeper"))).receive() == ["Queue.PurgeOk(message_count=1)"]
    assert woken(gateway) == []


def test_the_queues_of_an_expired_session_are_deleted(gateway: AllProtocolsBroker, peer: Peer) -> None:
    sleeping(gateway, "a")
    gateway.advance(601)
    (closed,) = peer.send(commands.Queue.Declare(0, own_queue("sleeper"), passive=True)).receive()
    assert closed.startswith("Channel.Close 404 NOT_FOUND")


# Shared subscriptions


def test_a_shared_subscription_can_be_consumed_in_two_protocols(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    member = gateway.client("member")
    member.subscribe("$share/workers/jobs/#", 1)
    assert consumed(peer, "mqtt-shared-workers-jobs.#") == []
    for number in range(4):
        sensor.publish(f"jobs/{number}", b"%d" % number, qos=1, id=1)
    bodies = [received.body for received in peer.receive_frames()]
    lines = member.receive()
    assert bodies == [b"1", b"3"]
    assert [line.split()[-1] for line in lines] == ["'0'", "'2'"]


def test_unacknowledged_messages_of_a_group_member_are_redelivered_over_amqp(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    member = gateway.client("member", expiry=600)
    member.subscribe("$share/workers/jobs", 1)
    sensor.publish("jobs", b"unfinished", qos=1, id=1)
    assert member.receive() == ["PUBLISH q1 #1 jobs 'unfinished'"]
    member.lose()
    received = fetched(peer, "mqtt-shared-workers-jobs")
    assert received.body == b"unfinished"
    assert isinstance(received.method, commands.Basic.GetOk)
    assert received.method.redelivered


def test_a_groups_queue_is_kept_while_it_has_an_amqp_consumer(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    member = gateway.client("member")
    member.subscribe("$share/workers/jobs", 1)
    consumed(peer, "mqtt-shared-workers-jobs")
    member.disconnect()
    sensor.publish("jobs", b"for amqp", qos=1, id=1)
    assert [received.body for received in peer.receive_frames()] == [b"for amqp"]


# Dead letters


@pytest.fixture
def dead_letter_queue(gateway: AllProtocolsBroker, peer: Peer) -> None:
    """Declare a queue ``dead`` for dead letters of the sleeper's queue."""
    dead = [commands.Exchange.Declare(0, "dlx", "fanout", durable=True), *queue("dead")]
    peer.send(*dead, commands.Queue.Bind(0, "dead", "dlx", "")).receive()


@pytest.mark.usefixtures("dead_letter_queue")
def test_a_message_that_a_client_refuses_is_dead_lettered(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    gateway.policy("^mqtt-subscription-", dead_letter_exchange="dlx")
    client = gateway.client("client", expiry=600)
    client.subscribe("a/b", 1)
    said = content_type("text/plain") + user_property("colour", "red")
    sensor.publish("a/b", b"bad", qos=1, id=1, properties=said)
    client.receive()
    client.puback(1, UNSPECIFIED_ERROR)
    letter = fetched(peer, "dead")
    death = death_of(letter)
    assert (death["reason"], death["queue"], death["exchange"]) == ("rejected", own_queue("client"), "amq.topic")
    assert (death["routing-keys"], death["count"]) == (["a.b"], 1)
    assert (letter.headers["x-first-death-reason"], letter.headers["colour"]) == ("rejected", "red")
    assert (key_of(letter), letter.body, properties_of(letter).content_type) == ("a.b", b"bad", "text/plain")


@pytest.mark.usefixtures("dead_letter_queue")
def test_a_message_that_expires_while_the_client_is_disconnected_is_dead_lettered(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    gateway.policy("^mqtt-subscription-", dead_letter_exchange="dlx")
    sleeping(gateway, "a")
    sensor.publish("a", b"short", qos=1, id=1, properties=message_expiry(5))
    sensor.publish("a", b"long", qos=1, id=2, properties=message_expiry(50))
    gateway.advance(6)
    letter = fetched(peer, "dead")
    assert (letter.body, death_of(letter)["reason"]) == (b"short", "expired")
    assert death_of(letter)["original-expiration"] == "5000"
    assert properties_of(letter).expiration is None
    assert woken(gateway) == ["PUBLISH q1 #1 a 'long' MESSAGE_EXPIRY_INTERVAL=44"]


@pytest.mark.usefixtures("dead_letter_queue")
def test_a_policy_limits_the_age_of_waiting_messages(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    sleeping(gateway, "a")
    gateway.policy("^mqtt-subscription-", message_ttl=2000, dead_letter_exchange="dlx")
    sensor.publish("a", b"1", qos=1, id=1)
    gateway.advance(3)
    sensor.publish("a", b"2", qos=1, id=2)
    assert death_of(fetched(peer, "dead"))["reason"] == "expired"
    assert woken(gateway) == ["PUBLISH q1 #1 a '2'"]


@pytest.mark.usefixtures("dead_letter_queue")
def test_a_policy_limits_the_count_of_waiting_messages(gateway: AllProtocolsBroker, sensor: Client, peer: Peer) -> None:
    sleeping(gateway, "a")
    gateway.policy("^mqtt-subscription-", max_length=2, dead_letter_exchange="dlx")
    for number in range(5):
        sensor.publish("a", b"%d" % number, qos=1, id=number + 1)
    letters = [fetched(peer, "dead") for _ in range(3)]
    assert [(letter.body, death_of(letter)["reason"]) for letter in letters] == [
        (b"0", "maxlen"), (b"1", "maxlen"), (b"2", "maxlen")
    ]  # fmt: skip
    assert woken(gateway) == ["PUBLISH q1 #1 a '3'", "PUBLISH q1 #2 a '4'"]


def test_a_dead_letter_of_amqp_has_user_properties_in_mqtt(gateway: AllProtocolsBroker, peer: Peer) -> None:
    """``x-death`` itself is an array of tables, which MQTT cannot encode; the first-death headers are text."""
    app = gateway.client("app")
    app.subscribe("graves/#", 1)
    dying = queue("dying", x_dead_letter_exchange="amq.topic", x_dead_letter_routing_key="graves.dying")
    peer.send(*dying, published("dying", b"rip", exchange="", delivery_mode=2)).receive()
    peer.send(commands.Basic.Get(0, "dying")).receive()
    peer.send(commands.Basic.Reject(1, requeue=False)).receive()
    (line,) = app.receive()
    assert line.startswith("PUBLISH q1 #1 graves/dying 'rip'")
    assert "USER_PROPERTY=('x-first-death-reason', 'rejected')" in line
    assert "USER_PROPERTY=('x-first-death-queue', 'dying')" in line


def test_a_message_of_mqtt_keeps_its_properties_through_a_dead_letter_exchange(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer
) -> None:
    """Data that AMQP cannot encode, pairs of one name and their order, still reach a subscriber of MQTT."""
    app = gateway.client("app")
    app.subscribe("graves/#", 1)
    peer.send(*queue("dying", "a", x_dead_letter_exchange="amq.topic", x_dead_letter_routing_key="graves.a")).receive()
    sensor.publish("a", b"rip", qos=1, id=1, properties=user_property("k", "2") + user_property("k", "1"))
    peer.send(commands.Basic.Get(0, "dying")).receive()
    peer.send(commands.Basic.Reject(1, requeue=False)).receive()
    (line,) = app.receive()
    assert "USER_PROPERTY=('k', '2') USER_PROPERTY=('k', '1')" in line
    assert "USER_PROPERTY=('x-first-death-reason', 'rejected')" in line


@pytest.mark.parametrize("name", ["x-death", "x-first-death-reason", "CC", "BCC"])
@pytest.mark.usefixtures("dead_letter_queue")
def test_user_properties_cannot_forge_the_brokers_headers(
    gateway: AllProtocolsBroker, sensor: Client, peer: Peer, name: str
) -> None:
    peer.send(
        *queue("forged", "dead", x_dead_letter_exchange="dlx"), *queue("dying", "a", x_dead_letter_exchange="dlx")
    )
    sensor.publish("a", b"rip", qos=1, id=1, properties=user_property(name, "dead"))
    peer.send(commands.Basic.Get(0, "dying")).receive()
    peer.send(commands.Basic.Reject(1, requeue=False)).receive()
    letter = fetched(peer, "dead")
    assert death_of(letter)["reason"] == letter.headers["x-first-death-reason"] == "rejected"
    assert all_of(peer, "forged") == []


# Permissions


def test_topic_permissions_can_contain_the_client_id(gateway: AllProtocolsBroker, peer: Peer) -> None:
    gateway.add_user("fleet", "secret")
    record = TopicPermissionRecord("/", "fleet", "amq.topic", r"^up\.{client_id}\.", r"^down\.{client_id}\.")
    gateway.broker.directory.put_topic_permission(record)
    peer.send(*queue("up", "up.#")).receive()
    device = gateway.client("d.1", username="fleet", password=b"secret")
    assert device.subscribe("down/d.1/#", 1) == ["SUBACK #1 1"]
    assert device.subscribe("down/d.2/#", 1) == ["SUBACK #1 87"]
    peer.send(published("down.d%2E1.reset", delivery_mode=2)).receive()
    assert device.receive() == ["PUBLISH q1 #1 down/d.1/reset 'hi'"]
    assert device.publish("up/d.1/t", b"23", qos=1, id=1) == ["PUBACK #1"]
    assert device.publish("up/d.2/t", b"24", qos=1, id=2) == ["PUBACK #2 NOT_AUTHORIZED"]
    assert all_of(peer, "up") == [b"23"]


def test_a_will_without_permission_is_not_published(gateway: AllProtocolsBroker, peer: Peer) -> None:
    gateway.add_user("mute", "secret", (".*", "^mqtt-", ".*"))
    peer.send(*queue("all", "#")).receive()
    gateway.client("mortal", username="mute", password=b"secret", will=Will("status")).lose()
    assert all_of(peer, "all") == []


def test_sys_topics_cannot_be_forged_over_amqp() -> None:
    gateway = AllProtocolsBroker()
    watcher, peer = gateway.client("watcher"), gateway.peer()
    assert watcher.subscribe("$SYS/#") == ["SUBACK #1 0"]
    peer.send(published("$SYS.broker.uptime", b"forged")).receive()
    assert watcher.receive() == []
