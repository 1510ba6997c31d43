"""The built-in interceptors: stamps, rewriting of headers, rate limits."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import ConfigurationError, Interceptor, Message, Origin, Refusal, Value
from gateway.plugins.registry import load_plugins
from gateway.testing import check_interceptor, check_metric_source, plain_message, sample_request
from gateway_interceptors.rate_limit import PublishRateLimit, RateLimitSettings
from gateway_interceptors.token_buckets import TokenBuckets
from gateway_interceptors.validation.validation import Validation
from gateway_mqtt.codec.properties import PropertyId
from tests.protocols.mqtt.dialogue import Client
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, fetched, properties_of, published, queue

AMQP = Origin("127.0.0.1:5001 -> 127.0.0.1:5672", 1, "guest", "amqp091")
MQTT = Origin("127.0.0.1:5001 -> 127.0.0.1:1883", 0, "guest", "MQTT 5.0", "sensor-1")
ORDER: dict[str, Any] = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
SETTINGS: dict[str, dict[str, Any]] = {
    "interceptor-timestamp": {},
    "interceptor-routing-node": {"overwrite": True},
    "interceptor-client-id": {},
    "interceptor-rewrite": {"rules": [{"set": {"a": 1}, "rename": {"text": "b"}, "remove": ["number"]}]},
    "interceptor-rate-limit": {"messages_per_s": 1.5, "burst": 2},
    "interceptor-json-schema": {"rules": [{"exchange": "source", "schema": ORDER}]},
    "interceptor-avro": {"rules": [{"exchange": "source", "schema": "long"}]},
}


class Vhost:
    name = "/"
    node = "gateway@here"

    def publish(self, exchange: str, routing_key: str, properties: object, body: bytes) -> None:
        raise NotImplementedError


def interceptor(name: str, **settings: Any) -> Interceptor:
    view = load_plugins().view("/", {name: settings or SETTINGS[name]})
    (found,) = view.interceptors(Vhost())
    return found


def changed(found: Interceptor, origin: Origin = AMQP, **headers: Value) -> dict[str, Value]:
    decision = found.on_publish(plain_message(headers=headers), origin)
    assert isinstance(decision, Message)
    return dict(decision.headers)


@pytest.mark.parametrize("name", SETTINGS)
def test_each_fulfils_the_contract(name: str) -> None:
    found = interceptor(name)
    check_interceptor(found)
    assert found.on_error in ("refuse", "pass")


# Services of operators


def test_operators_see_and_lift_the_limit_of_a_publisher() -> None:
    limit = PublishRateLimit(RateLimitSettings(messages_per_s=0.001, burst=2), lambda: 0.0)
    for _ in range(5):
        limit.on_publish(plain_message(), AMQP)
    assert list(limit.rows(sample_request())) == [{"per": "user", "name": "guest", "tokens": 0, "refused": 3}]
    check_metric_source(limit)
    assert [metric.samples for metric in limit.metrics()] == [[({}, 3)], [({}, 1)]]
    limit.lift(sample_request(query={"name": "guest"}))
    assert list(limit.rows(sample_request())) == []
    assert limit.on_publish(message := plain_message(), AMQP) is message


def test_checks_of_bodies_are_counted_by_exchange_and_quarantine() -> None:
    rules = [{"exchange": "source", "schema": ORDER}, {"exchange": "other", "schema": ORDER, "quarantine": "bad"}]
    found = interceptor("interceptor-json-schema", rules=rules)
    for exchange, body in (("source", b"{}"), ("source", b'{"id": 1}'), ("other", b"{}"), ("elsewhere", b"{}")):
        found.on_publish(plain_message(body=body).with_address(exchange, "k", plain_message().header), AMQP)
    assert isinstance(found, Validation)
    checked, invalid = found.metrics()
    assert checked.samples == [({"exchange": "source"}, 2), ({"exchange": "other"}, 1)]
    assert invalid.samples == [
        ({"exchange": "source", "quarantine": ""}, 1),
        ({"exchange": "other", "quarantine": "bad"}, 1),
    ]


# Stamps


def test_the_time_of_arrival_is_in_milliseconds_and_kept_unless_it_may_be_overwritten() -> None:
    stamped = changed(interceptor("interceptor-timestamp"))["timestamp_in_ms"]
    assert isinstance(stamped, int)
    assert stamped > 1_700_000_000_000
    assert changed(interceptor("interceptor-timestamp"), timestamp_in_ms=1) == {"timestamp_in_ms": 1}
    assert changed(interceptor("interceptor-timestamp", overwrite=True), timestamp_in_ms=1)["timestamp_in_ms"] != 1


def test_the_property_timestamp_is_set_for_amqp_and_stomp_and_kept_unless_it_may_be_overwritten() -> None:
    gateway = AllProtocolsBroker()
    peer = gateway.peer()
    peer.send(*queue("stamped", "t.#")).receive()
    earlier = datetime.fromtimestamp(1, UTC)
    for overwrite, expected in ((False, 1), (True, 0)):
        gateway.vhost.interception.apply([interceptor("interceptor-timestamp", overwrite=overwrite)])
        peer.send(published("t.1", headers={"own": 1}), published("t.1", timestamp=earlier)).receive()
        gateway.stomp().publish("/topic/t.1")
        stamped, given, stomp = (properties_of(fetched(peer, "stamped")) for _ in range(3))
        for properties in (stamped, stomp):
            assert properties.timestamp is not None
            assert properties.timestamp.timestamp() == properties.headers["timestamp_in_ms"] // 1000
        assert stamped.headers["own"] == 1
        assert (given.timestamp == earlier) is bool(expected)


def test_a_message_of_mqtt_gets_the_header_only() -> None:
    gateway = AllProtocolsBroker()
    peer = gateway.peer()
    peer.send(*queue("stamped", "t.#")).receive()
    gateway.vhost.interception.apply([interceptor("interceptor-timestamp")])
    sensor: Client = gateway.client("sensor")
    sensor.request_frames(sensor.write.publish("t/1", qos=1, id=1))
    properties = properties_of(fetched(peer, "stamped"))
    assert (properties.timestamp, "timestamp_in_ms" in properties.headers) == (None, True)


def test_the_routing_node_is_that_of_the_broker() -> None:
    assert changed(interceptor("interceptor-routing-node")) == {"x-routed-by": "gateway@here"}


def test_the_client_id_is_that_of_an_mqtt_client_whatever_it_claims() -> None:
    found = interceptor("interceptor-client-id")
    assert changed(found, MQTT, **{"x-opt-mqtt-client-id": "other"}) == {"x-opt-mqtt-client-id": "sensor-1"}
    assert changed(found) == {}


# Rewriting


def test_headers_are_renamed_set_and_removed() -> None:
    rule = {"rename": {"old": "new"}, "set": {"stage": "test", "n": 1}, "remove": ["secret"]}
    found = interceptor("interceptor-rewrite", rules=[rule])
    assert changed(found, old="x", secret="y", kept=True) == {"new": "x", "stage": "test", "n": 1, "kept": True}


def test_a_rule_may_be_for_one_exchange_and_for_deliveries() -> None:
    rules = [{"exchange": "other", "set": {"a": 1}}, {"on": "deliver", "remove": ["internal"]}]
    found = interceptor("interceptor-rewrite", rules=rules)
    assert changed(found, internal=1) == {"internal": 1}
    assert dict(found.on_deliver(plain_message(headers={"internal": 1}), "q", AMQP).headers) == {}


@pytest.mark.parametrize(
    ("name", "settings", "exchanges"),
    [
        (
            "interceptor-rewrite",
            {"rules": [{"exchange": "a", "set": {"x": 1}}, {"exchange": "", "remove": ["y"]}]},
            {"a", ""},
        ),
        ("interceptor-rewrite", {"rules": [{"exchange": "a", "set": {"x": 1}}, {"remove": ["y"]}]}, None),
        ("interceptor-rewrite", {"rules": [{"on": "deliver", "remove": ["y"]}]}, set()),
        ("interceptor-json-schema", SETTINGS["interceptor-json-schema"], {"source"}),
        ("interceptor-avro", SETTINGS["interceptor-avro"], {"source"}),
    ],
)
def test_each_sees_the_messages_of_its_exchanges_only(
    name: str, settings: dict[str, Any], exchanges: set[str] | None
) -> None:
    assert interceptor(name, **settings).exchanges == exchanges


# Rate limits


@given(
    per_s=st.floats(0.1, 1000),
    burst=st.integers(1, 50),
    pauses=st.lists(st.floats(0, 5), min_size=1, max_size=200),
)
def test_a_bucket_never_gives_more_than_its_burst_and_its_rate(per_s: float, burst: int, pauses: list[float]) -> None:
    now_s = 0.0
    buckets = TokenBuckets(per_s, burst, lambda: now_s)
    taken = 0
    for pause_s in pauses:
        now_s += pause_s
        wait_s = buckets.take("key")
        taken += not wait_s
        assert 0 <= wait_s <= 1 / per_s + 1e-9
    assert taken <= burst + now_s * per_s + 1e-6


def test_the_buckets_of_ever_new_clients_are_bounded() -> None:
    buckets = TokenBuckets(1, 1, lambda: 0.0)
    assert all(buckets.take(str(number)) == 0 for number in range(10_500))
    assert len(buckets) <= 10_000


@pytest.mark.parametrize(("per", "first", "other"), [("user", 1, 1), ("client", 1, 0), ("vhost", 1, 1)])
def test_a_limit_is_shared_by_a_user_a_client_or_all(per: str, first: int, other: int) -> None:
    found = interceptor("interceptor-rate-limit", messages_per_s=0.01, burst=1, per=per)
    message = plain_message()
    assert found.on_publish(message, AMQP) is message
    refused = [isinstance(found.on_publish(message, origin), Refusal) for origin in (AMQP, MQTT)]
    assert refused == [bool(first), bool(other)]


def test_every_protocol_shows_the_limit_to_its_publisher() -> None:
    gateway = AllProtocolsBroker()
    reason = "rate limit exceeded: 0.5 messages a second for user 'guest'; try again in"
    gateway.vhost.interception.apply([interceptor("interceptor-rate-limit", messages_per_s=0.5, burst=1)])
    gateway.peer().send(published("t.1")).receive()
    (closed,) = gateway.peer().send(published("t.1")).receive()
    assert closed.startswith(f"Channel.Close 406 PRECONDITION_FAILED - {reason}")
    sensor: Client = gateway.client("sensor")
    (answer,) = sensor.request_frames(sensor.write.publish("t/1", qos=1, id=1))
    assert str(answer) == "PUBACK #1 QUOTA_EXCEEDED"
    assert dict(answer.properties)[PropertyId.REASON_STRING].startswith(reason)
    error = gateway.stomp().publish("/topic/t.1")[0]
    assert reason.encode() in error.body


# Settings


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("interceptor-timestamp", {"overwrit": True}, "overwrit"),
        ("interceptor-rewrite", {"rules": []}, "'rules' must have at least one rule"),
        ("interceptor-rewrite", {"rules": [{"exchange": "x"}]}, "rule 1 needs 'set', 'rename' or 'remove'"),
        ("interceptor-rate-limit", {"messages_per_s": 0}, "messages_per_s"),
        ("interceptor-rate-limit", {}, "messages_per_s"),
        ("interceptor-json-schema", {"rules": []}, "'rules' must have at least one rule"),
        ("interceptor-json-schema", {"rules": [{"exchange": "x", "schema": {"type": 1}}]}, "the schema is not valid"),
    ],
)
def test_wrong_settings_name_the_plugin_and_the_fault(name: str, settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.*{complaint}"):
        load_plugins().view("/", {name: settings}).interceptors(Vhost())
