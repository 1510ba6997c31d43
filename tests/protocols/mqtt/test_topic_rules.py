"""The rules of topics in a virtual host: mapping, exchange and prefix by a runtime parameter, changed while it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import PreconditionFailed, Value
from gateway.kernel.journal.records.access import TopicPermissionRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.testing import header_of
from gateway_memory import MemoryStore
from gateway_mqtt.topics_change import TopicsChange
from gateway_mqtt.translation.prefixed_topics import PrefixedTopics
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE
from tests.protocols.mqtt.dialogue import Gateway


class Rules(Gateway):
    """A gateway whose topic rules follow the parameter."""

    def __init__(self, *, store: MemoryStore | None = None, **options: object) -> None:
        super().__init__(store=store, **options)  # type: ignore[arg-type]
        self.change = TopicsChange(self.settings)
        self.change.start()
        self.settle()

    def set(self, **value: Value) -> None:
        self.broker.parameters.put(ParameterRecord("/", "mqtt-topics", "topics", value))
        self.settle()

    def clear(self) -> None:
        self.broker.parameters.remove(self.broker.parameters["/", "mqtt-topics", "topics"])
        self.settle()

    def queue(self, exchange: str, key: str) -> Queue:
        vhost = self.broker.vhost("/")
        queue = vhost.declare_queue("seen")
        vhost.bind(vhost.exchange(exchange), queue, key)
        assert isinstance(queue, Queue)
        return queue

    def publish(self, exchange: str, key: str, body: bytes = b"amqp") -> None:
        vhost = self.broker.vhost("/")
        vhost.publish(vhost.exchange(exchange), Message(exchange, key, header_of(is_persistent=True), body))
        self.settle()


@pytest.fixture
def gateway() -> Rules:
    return Rules()


# The mapping with a prefix


topics = st.text("ab.*%/", min_size=1)


@given(topic=topics, prefix=st.sampled_from(["p", "plant.hall", "v1%2E2"]))
def test_every_topic_is_restored(topic: str, prefix: str) -> None:
    mapping = PrefixedTopics(REVERSIBLE, prefix)
    assert mapping.topic(mapping.routing_key(topic)) == topic
    assert mapping.filter(mapping.binding_key(topic)) == topic


def test_topics_of_the_broker_have_no_prefix() -> None:
    mapping = PrefixedTopics(LOSSY, "p")
    assert mapping.routing_key("$SYS/broker/uptime") == "$SYS.broker.uptime"
    assert mapping.binding_key("$SYS/#") == "$SYS.#"
    assert mapping.topic("$SYS.broker.uptime") == "$SYS/broker/uptime"
    assert mapping.binding_key("#") == "p.#"


# Validation


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"mapping": "exact"}, "mapping: Input should be 'reversible' or 'lossy'"),
        ({"colour": 1}, r"colour: Extra inputs are not permitted \(the keys are mapping, exchange, prefix\)"),
        ({"exchange": ""}, "exchange: String should have at least 1 character"),
        ({"exchange": "x" * 256}, "at most 255 bytes"),
        ({"exchange": "amq.direct"}, "'amq.direct' in vhost '/' is of type 'direct'; it must be a topic exchange"),
        ({"prefix": "a/+"}, "prefix: 'a/\\+' is not a valid topic name"),
        ({"prefix": "a/"}, "must be levels such as 'plant/hall'"),
        ({"prefix": "$SYS"}, "must be levels such as 'plant/hall'"),
        (["lossy"], "value: Input should be"),
    ],
)
def test_an_invalid_value_is_refused(gateway: Rules, value: Value, reason: str) -> None:
    with pytest.raises(PreconditionFailed, match=reason):
        gateway.broker.parameters.put(ParameterRecord("/", "mqtt-topics", "topics", value))
    assert gateway.broker.parameters == {}


def test_there_is_one_parameter_in_a_virtual_host(gateway: Rules) -> None:
    with pytest.raises(PreconditionFailed, match="has the parameter 'topics' only, not 'other'"):
        gateway.broker.parameters.put(ParameterRecord("/", "mqtt-topics", "other", {}))


# Effects


def test_publishes_and_deliveries_pass_the_exchange_below_the_prefix(gateway: Rules) -> None:
    gateway.set(exchange="telemetry", prefix="plant/hall")
    seen = gateway.queue("telemetry", "plant.hall.#")
    client = gateway.client("c")
    client.subscribe("lamp/+", 1)
    assert client.publish("lamp/1", qos=1, id=7) == ["PUBLISH q1 #1 lamp/1 'hi'", "PUBACK #7"]
    entry = seen.take()
    assert entry is not None
    assert (entry.message.exchange, entry.message.routing_key) == ("telemetry", "plant.hall.lamp.1")
    gateway.publish("telemetry", "plant.hall.lamp.2")
    assert client.receive() == ["PUBLISH q1 #2 lamp/2 'amqp'"]


def test_the_lossy_mapping_applies_to_one_virtual_host(gateway: Rules) -> None:
    gateway.set(mapping="lossy")
    client = gateway.client("c")
    client.subscribe("#")
    assert client.publish("a.b") == ["PUBLISH a/b 'hi'"]
    assert gateway.settings.mapping_of("other") is REVERSIBLE


def test_connected_clients_are_disconnected_and_their_sessions_move(gateway: Rules) -> None:
    kept = gateway.client("kept", expiry=600)
    kept.subscribe("a/#", 1)
    clean = gateway.client("clean")
    clean.subscribe("a/#", 1)
    gateway.set(exchange="telemetry", prefix="p")
    assert kept.receive()[0].startswith("DISCONNECT ADMINISTRATIVE_ACTION")
    assert clean.receive()[0].startswith("DISCONNECT ADMINISTRATIVE_ACTION")
    gateway.client("publisher").publish("a/1", qos=1, id=1)
    again = gateway.new_client()
    assert again.connect("kept", is_clean=False, expiry=600) == ["CONNACK present", "PUBLISH q1 #1 a/1 'hi'"]
    bindings = gateway.broker.vhost("/").bindings
    queue = gateway.broker.vhost("/").queue("mqtt-subscription-keptqos1")
    assert [(each.source.name, each.routing_key) for each in bindings.to(queue)] == [("telemetry", "p.a.#")]


def test_without_the_parameter_the_configuration_applies_again(gateway: Rules) -> None:
    gateway.client("kept", expiry=600).subscribe("a", 1)
    gateway.set(prefix="p")
    gateway.clear()
    gateway.publish("amq.topic", "a")
    again = gateway.new_client()
    assert again.connect("kept", is_clean=False, expiry=600) == ["CONNACK present", "PUBLISH q1 #1 a 'amqp'"]


def test_retained_messages_move(gateway: Rules) -> None:
    gateway.client("c").publish("a/b", retain=True)
    gateway.set(prefix="p")
    client = gateway.client("c")
    assert client.subscribe("#") == ["SUBACK #1 0", "PUBLISH retain a/b 'hi'"]
    retained = gateway.broker.vhost("/").retained
    assert [each.message.routing_key for each in retained] == ["p.a.b"]


def test_the_messages_of_a_group_move_to_its_new_queue(gateway: Rules) -> None:
    member = gateway.client("m", expiry=600)
    member.subscribe("$share/g/jobs", 1)
    member.disconnect()
    gateway.client("publisher").publish("jobs", qos=1, id=1)
    gateway.set(prefix="p")
    names = gateway.broker.vhost("/").queue_by_name
    assert "mqtt-shared-g-jobs" not in names
    assert len(names["mqtt-shared-g-p.jobs"]) == 1
    gateway.client("publisher").publish("jobs", qos=1, id=1)
    assert len(names["mqtt-shared-g-p.jobs"]) == 2


def test_the_rules_survive_a_restart(gateway: Rules) -> None:
    gateway.set(prefix="p")
    gateway.client("kept", expiry=600).subscribe("a", 1)
    crashed = gateway.crashed()
    crashed.publish("amq.topic", "p.a")
    again = crashed.new_client()
    assert again.connect("kept", is_clean=False, expiry=600) == ["CONNACK present", "PUBLISH q1 #1 a 'amqp'"]


def test_a_change_that_a_crash_interrupted_is_completed(gateway: Rules) -> None:
    gateway.client("kept", expiry=600).subscribe("a", 1)
    record = ParameterRecord("/", "mqtt-topics", "topics", {"prefix": "p"})
    gateway.broker.parameters.components.clear()
    gateway.change.require_valid(record)
    gateway.broker.parameters.restore(record)
    gateway.change.start()
    gateway.settle()
    gateway.publish("amq.topic", "p.a")
    queue = gateway.broker.vhost("/").queue("mqtt-subscription-keptqos1")
    assert [each.routing_key for each in gateway.broker.vhost("/").bindings.to(queue)] == ["p.a"]


def test_an_exchange_of_another_type_that_appears_first_leaves_the_rules(gateway: Rules) -> None:
    vhost = gateway.broker.vhost("/")
    vhost.declare_exchange("late", "topic")
    gateway.set(exchange="late")
    assert gateway.settings.exchange_of("/") == "late"
    assert vhost.exchange("late").type_name == "topic"


def test_patterns_insert_the_client_identifier_without_the_prefix(gateway: Rules) -> None:
    gateway.set(prefix="p")
    record = TopicPermissionRecord("/", "guest", "amq.topic", r"^p\.{client_id}\.", ".*")
    gateway.broker.directory.put_topic_permission(record)
    gateway.settle()
    client = gateway.client("lamp.1")
    assert client.publish("lamp.1/state", qos=1, id=1) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]
    assert client.publish("other/state", qos=1, id=2) == ["PUBACK #2 NOT_AUTHORIZED"]


def test_response_topics_have_the_prefix_for_other_protocols(gateway: Rules) -> None:
    gateway.set(prefix="p")
    seen = gateway.queue("amq.topic", "p.ask")
    client = gateway.client("c")
    client.subscribe("answer", 1)
    reply = b"\x08" + len(b"answer").to_bytes(2, "big") + b"answer"
    client.publish("ask", properties=reply)
    entry = seen.take()
    assert entry is not None
    assert entry.message.headers["x-reply-to-topic"] == "p.answer"
