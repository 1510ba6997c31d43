"""Attempts to bypass permissions: forbidden routing keys, and entities of other users and of the broker."""

from collections.abc import Callable
from typing import Final

import pytest
from pamqp import commands

from gateway.kernel.journal.records.access import TopicPermissionRecord
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.mqtt.packets import Will
from tests.protocols.stomp.dialogue import Client as StompClient
from tests.scenarios.all_protocols_broker import published
from tests.scenarios.permission_matrix import USER, Scene

ALL: Final = frozenset((letter, ".*") for letter in "CWR")


class Topical(Scene):
    """Anna has all permissions, but may publish to topics and read topics only with keys that begin with ``ok``."""

    def __init__(self) -> None:
        super().__init__(ALL)
        record = TopicPermissionRecord("/", USER, "amq.topic", "^ok", "^ok")
        self.gateway.broker.directory.put_topic_permission(record)

    def amqp_says(self, *sent: object) -> None:
        peer = Peer(self.gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
        peer.open(user=USER, password=USER)
        peer.send(commands.Channel.Open()).receive()
        for each in sent:  # a refusal closes the channel: the next frame is sent on another
            received = peer.send(each).receive()  # type: ignore[arg-type]
            if any("Channel.Close" in line for line in received):
                peer.send(commands.Channel.CloseOk(), commands.Channel.Open()).receive()

    def stomp_says(self, *frames: tuple[str, dict[str, str]]) -> None:
        for verb, headers in frames:
            client = StompClient(self.gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
            client.connect(login=USER, passcode=USER)
            client.command(verb, headers, b"x" if verb == "SEND" else b"")

    def keys_of_topics(self) -> set[str]:
        """The routing keys of the messages that the topic exchange routed."""
        keys = set()
        queue = self.gateway.vhost.queue("probe")
        while (entry := queue.get()) is not None:
            keys.add(entry.message.routing_key)
        return keys


c = commands
_LETTERS: Final = {"x-dead-letter-exchange": "amq.topic", "x-message-ttl": 0}
_BAD_LETTERS: Final = {**_LETTERS, "x-dead-letter-routing-key": "bad"}
_TEXT_LETTERS: Final = {"x-dead-letter-exchange": "amq.topic", "x-message-ttl": "0", "x-dead-letter-routing-key": "bad"}


def http_message(exchange: str, key: str, **properties: object) -> tuple[str, str, dict[str, object]]:
    fields = {"routing_key": key, "payload": "x", "payload_encoding": "string", "properties": properties}
    return "POST", f"/exchanges/%2F/{exchange}/publish", fields


def http(*requests: tuple[str, str, object]) -> Callable[[Topical], object]:
    return lambda scene: [scene.console.ask(*request, user=USER) for request in requests]


WAYS: Final[dict[str, Callable[[Topical], object]]] = {
    "AMQP: the key itself": lambda s: s.amqp_says(published("bad")),
    "AMQP: CC": lambda s: s.amqp_says(published("ok", headers={"CC": ["bad"]})),
    "AMQP: BCC": lambda s: s.amqp_says(published("ok", headers={"BCC": ["bad"]})),
    "AMQP: a dead-letter key": lambda s: s.amqp_says(
        c.Queue.Declare(0, "mine", arguments=_BAD_LETTERS), published("mine", exchange="")
    ),
    "AMQP: dead letters under the queue's own name": lambda s: s.amqp_says(
        c.Queue.Declare(0, "bad", arguments=_LETTERS), published("bad", exchange="")
    ),
    "AMQP: an alternate exchange": lambda s: s.amqp_says(
        c.Exchange.Declare(0, "mine", "direct", arguments={"alternate-exchange": "amq.topic"}),
        published("bad", exchange="mine"),
    ),
    "AMQP: another exchange bound into the topics": lambda s: s.amqp_says(
        c.Exchange.Declare(0, "mine", "fanout"), c.Exchange.Bind(0, "amq.topic", "mine", "k"),
        published("bad", exchange="mine"),
    ),
    "STOMP: the key itself": lambda s: s.stomp_says(("SEND", {"destination": "/topic/bad"})),
    "STOMP: by /exchange": lambda s: s.stomp_says(("SEND", {"destination": "/exchange/amq.topic/bad"})),
    "STOMP: CC": lambda s: s.stomp_says(("SEND", {"destination": "/topic/ok", "CC": "bad", "BCC": "bad"})),
    "STOMP: a dead-letter key": lambda s: s.stomp_says(
        ("SEND", {"destination": "/queue/mine", **_TEXT_LETTERS}), ("SEND", {"destination": "/amq/queue/mine"}),
        ("SUBSCRIBE", {"id": "0", "destination": "/queue/mine", **_TEXT_LETTERS}),
        ("SEND", {"destination": "/amq/queue/mine"}),
    ),
    "MQTT: the topic itself": lambda s: s.mqtt().publish("bad", qos=1, id=1),
    "MQTT: retained": lambda s: s.mqtt().publish("bad", qos=1, id=1, retain=True),
    "MQTT: a will": lambda s: (
        s.gateway.client("c", username=USER, password=USER.encode(), will=Will("bad", b"x")).lose()
    ),
    "MQTT: a delayed will": lambda s: (
        s.gateway.client("c", expiry=5, username=USER, password=USER.encode(), will=Will("bad", b"x")).lose(),
        s.gateway.advance(10),
    ),
    "HTTP: the key itself": http(http_message("amq.topic", "bad")),
    "HTTP: CC and BCC": http(
        http_message("amq.topic", "ok", headers={"CC": ["bad"]}),
        http_message("amq.topic", "ok", headers={"BCC": ["bad"]}),
    ),
    "HTTP: a dead-letter key": http(
        ("PUT", "/queues/%2F/mine", {"arguments": _BAD_LETTERS}), http_message("amq.default", "mine")
    ),
    "HTTP: an alternate exchange": http(
        ("PUT", "/exchanges/%2F/mine", {"type": "direct", "arguments": {"alternate-exchange": "amq.topic"}}),
        http_message("mine", "bad"),
    ),
    "HTTP: another exchange bound into the topics": http(
        ("PUT", "/exchanges/%2F/mine", {"type": "fanout"}),
        ("POST", "/bindings/%2F/e/mine/e/amq.topic", {"routing_key": "k"}),
        http_message("mine", "bad"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_no_attempt_publishes_to_topics_under_a_forbidden_key(way: str) -> None:
    scene = Topical()
    WAYS[way](scene)
    scene.gateway.advance(1)
    assert scene.keys_of_topics() <= {"ok"}
    assert len(scene.gateway.vhost.queue("wrong")) == 0, "a message was routed under the forbidden key"


def test_allowed_keys_are_routed() -> None:
    scene = Topical()
    scene.amqp_says(published("ok.amqp"))
    scene.stomp_says(("SEND", {"destination": "/topic/ok.stomp"}))
    scene.mqtt().publish("ok/mqtt", qos=1, id=1)
    http(http_message("amq.topic", "ok.http"))(scene)
    assert scene.keys_of_topics() == {"ok.amqp", "ok.stomp", "ok.mqtt", "ok.http"}


READS: Final[dict[str, Callable[[Topical], object]]] = {
    "AMQP": lambda s: s.amqp_says(c.Queue.Declare(0, "mine"), c.Queue.Bind(0, "mine", "amq.topic", "#")),
    "AMQP, by another exchange": lambda s: s.amqp_says(
        c.Exchange.Declare(0, "hers", "fanout"), c.Exchange.Bind(0, "hers", "amq.topic", "#"),
        c.Queue.Declare(0, "mine"), c.Queue.Bind(0, "mine", "hers", ""),
    ),
    "STOMP": lambda s: s.stomp_says(("SUBSCRIBE", {"id": "0", "destination": "/topic/#", "x-queue-name": "mine"})),
    "MQTT": lambda s: s.mqtt().subscribe("#", 1),
    "MQTT, shared": lambda s: s.mqtt().subscribe("$share/g/#", 1),
    "HTTP": http(("PUT", "/queues/%2F/mine", {}), ("POST", "/bindings/%2F/e/amq.topic/q/mine", {"routing_key": "#"})),
}  # fmt: skip


@pytest.mark.parametrize("way", READS)
def test_no_attempt_reads_topics_of_a_forbidden_key(way: str) -> None:
    scene = Topical()
    READS[way](scene)
    vhost = scene.gateway.vhost
    assert {binding.destination.name for binding in vhost.bindings.of(vhost.exchange("amq.topic"))} == {
        "probe", "wrong",
    }  # fmt: skip


# Entities of the broker and of others, for a user with all permissions

SYSTEM: Final = {
    "publish to the trace exchange": lambda s: s.amqp(published("x", exchange="amq.rabbitmq.trace")),
    "publish to the trace exchange over STOMP": lambda s: s.stomp(
        ("SEND", {"destination": "/exchange/amq.rabbitmq.trace/x"})
    ),
    "publish to the trace exchange over HTTP": lambda s: s.http(*http_message("amq.rabbitmq.trace", "x")),
    "delete the trace exchange": lambda s: s.amqp(c.Exchange.Delete(0, "amq.rabbitmq.trace")),
    "delete the topics": lambda s: s.amqp(c.Exchange.Delete(0, "amq.topic")),
    "delete the topics over HTTP": lambda s: s.http("DELETE", "/exchanges/%2F/amq.topic"),
    "declare a reserved exchange": lambda s: s.amqp(c.Exchange.Declare(0, "amq.mine", "fanout")),
    "declare a reserved queue": lambda s: s.amqp(c.Queue.Declare(0, "amq.mine")),
    "declare a reserved exchange over HTTP": lambda s: s.http("PUT", "/exchanges/%2F/amq.mine", {"type": "fanout"}),
    "declare a reserved queue over HTTP": lambda s: s.http("PUT", "/queues/%2F/amq.mine", {}),
    "declare a reserved queue over STOMP": lambda s: s.stomp(("SEND", {"destination": "/queue/amq.mine"})),
}


@pytest.mark.parametrize("attempt", SYSTEM)
def test_operations_on_the_brokers_entities_are_refused(attempt: str) -> None:
    scene = Scene(ALL)
    before = set(scene.gateway.vhost.exchange_by_name), set(scene.gateway.vhost.queue_by_name)
    assert not SYSTEM[attempt](scene)
    assert (set(scene.gateway.vhost.exchange_by_name), set(scene.gateway.vhost.queue_by_name)) == before


#: Anna's attempts with the exclusive queue of guest's connection.
EXCLUSIVE: Final = [
    c.Queue.Declare(0, "hers"),
    c.Queue.Declare(0, "hers", passive=True),
    c.Queue.Bind(0, "hers", "amq.topic", "k"),
    c.Queue.Unbind(0, "hers", "amq.topic", "there"),
    c.Queue.Purge(0, "hers"),
    c.Queue.Delete(0, "hers"),
    c.Basic.Get(0, "hers"),
    c.Basic.Consume(0, "hers"),
]


@pytest.mark.parametrize("method", EXCLUSIVE, ids=lambda method: method.name)
def test_an_exclusive_queue_is_locked_for_other_connections(method: commands.Queue.Declare) -> None:
    scene = Scene(ALL)
    guest = scene.gateway.peer()
    guest.send(c.Queue.Declare(0, "hers", exclusive=True), c.Queue.Bind(0, "hers", "amq.topic", "there")).receive()
    peer = Peer(scene.gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).receive()
    (answer,) = peer.send(method).receive()
    assert answer.startswith("Channel.Close 405 RESOURCE_LOCKED"), answer


def test_an_exclusive_queue_is_locked_for_stomp_and_http() -> None:
    scene = Scene(ALL)
    guest = scene.gateway.peer()
    guest.send(c.Queue.Declare(0, "hers", exclusive=True), published("hers", exchange="")).receive()
    scene.console.ask("POST", "/queues/%2F/hers/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"},
                      user=USER)  # fmt: skip
    scene.console.ask("DELETE", "/queues/%2F/hers/contents", user=USER)
    scene.console.ask("DELETE", "/queues/%2F/hers", user=USER)
    scene.console.ask("POST", "/bindings/%2F/e/amq.topic/q/hers", {"routing_key": "k"}, user=USER)
    client = StompClient(scene.gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    client.connect(login=USER, passcode=USER)
    assert [frame.verb for frame in client.subscribe("/amq/queue/hers")] == ["ERROR", "closed"]
    queue = scene.gateway.vhost.queue("hers")
    assert len(queue) == 1
    assert len(scene.gateway.vhost.bindings.to(queue)) == 0


def test_a_reply_queue_of_another_connection_cannot_be_consumed() -> None:
    scene = Scene(ALL)
    guest = scene.gateway.peer()
    guest.send(c.Basic.Consume(0, "amq.rabbitmq.reply-to", no_ack=True)).receive()
    (name,) = scene.gateway.vhost.reply_queues.by_name
    peer = Peer(scene.gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).receive()
    for method in (c.Basic.Consume(0, name), c.Basic.Get(0, name), c.Queue.Purge(0, name), c.Queue.Delete(0, name)):
        received = peer.send(method).receive()
        if any("Channel.Close" in line for line in received):
            peer.send(commands.Channel.CloseOk(), commands.Channel.Open()).receive()
    assert name in scene.gateway.vhost.reply_queues.by_name
    scene.gateway.peer().send(published(name, b"the answer", exchange="")).receive()
    assert not any("Deliver" in line for line in peer.receive())
    assert any("Deliver" in line for line in guest.receive())


def test_another_users_session_can_be_neither_resumed_nor_deleted_nor_listed() -> None:
    scene = Scene(ALL)
    owner = scene.gateway.client("sensor", expiry=1000, username="guest", password=b"guest")
    owner.subscribe("t", 1)
    owner.lose()
    scene.gateway.peer().send(published("t")).receive()
    for is_clean in (False, True):
        thief = scene.gateway.new_client()
        received = thief.connect("sensor", is_clean=is_clean, username=USER, password=USER.encode())
        assert "CONNACK" in received[0], received
        assert received[0] not in ("CONNACK", "CONNACK present"), received
        thief.lose()
    again = scene.gateway.client("sensor", is_clean=False, username="guest", password=b"guest", expiry=1000)
    assert any("PUBLISH" in line for line in [*again.backlog, *again.receive()])
