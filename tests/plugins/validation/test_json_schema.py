"""Bodies are checked with JSON Schema."""

import json
from time import perf_counter
from typing import Any

import pytest

from gateway.api import ConfigurationError, Diversion, Refusal, RefusalCause
from gateway.testing import plain_message
from tests.plugins.validation.rules import AMQP, complaint, validator
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, all_of, fetched, properties_of, published, queue

PLUGIN = "interceptor-json-schema"
ORDER: dict[str, Any] = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
NESTED: dict[str, Any] = {"type": "array", "items": {"$ref": "#"}}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 10_000, "it is not JSON"),
        (b'{"id": NaN}', "it is not JSON"),
        (b'{"id": "\\ud800"}', "it is not JSON"),
        (b"[]", '$: [] is not of type "object"'),
        (b'{"id": "one"}', '$.id: "one" is not of type "integer"'),
        (b" " * 20_000, "it has 20000 bytes, at most 16384 are allowed"),
    ],
)
def test_a_body_that_does_not_match_is_refused_with_the_place_of_the_fault(body: bytes, fault: str) -> None:
    decision = validator(PLUGIN, schema=ORDER).on_publish(plain_message(body=body), AMQP)
    assert decision == Refusal(f"the body is invalid: {fault}", RefusalCause.PAYLOAD)


def test_a_body_that_matches_and_a_message_without_a_rule_pass() -> None:
    found = validator(PLUGIN, schema=ORDER)
    for message in (
        plain_message(body=b'{"id": 1}'),
        plain_message(body=b"{").with_address("other", "", plain_message().header),
    ):
        assert found.on_publish(message, AMQP) is message


def test_the_reason_quotes_no_control_characters() -> None:
    schema = {"additionalProperties": {"type": "integer"}}
    assert complaint(validator(PLUGIN, schema=schema), b'{"a\\u0000\\n": "x"}') == '$.a??: "x" is not of type "integer"'


@pytest.mark.parametrize("depth", [200, 201, 300, 900])
def test_deep_bodies_are_refused_before_they_are_compared(depth: int) -> None:
    found = validator(PLUGIN, schema=NESTED)
    deep = "" if depth <= 200 else "it is nested deeper than 200 levels"
    assert complaint(found, b"[" * depth + b"]" * depth) == deep
    assert complaint(found, b'[{"a": 1}]') == '$[0]: {"a":1} is not of type "array"'


COSTLY = [
    pytest.param({"type": "string", "pattern": "^(a+)+$"}, json.dumps("a" * 16_000 + "b"), id="pattern"),
    pytest.param({"patternProperties": {"^(a+)+$": {}}}, json.dumps({"a" * 16_000 + "b": 1}), id="property"),
    pytest.param({"uniqueItems": True}, json.dumps([x for n in range(1000) for x in (n, str(n))]), id="unique"),
]


@pytest.mark.parametrize(("schema", "body"), COSTLY)
def test_no_body_takes_more_than_linear_time(schema: dict[str, Any], body: str) -> None:
    found = validator(PLUGIN, schema=schema)
    started_s = perf_counter()
    complaint(found, body.encode())
    assert perf_counter() - started_s < 0.1


def test_an_invalid_message_goes_to_quarantine_with_its_reason() -> None:
    gateway = AllProtocolsBroker()
    peer = gateway.peer()
    peer.send(*queue("quarantine"), *queue("orders", "order.#")).receive()
    rule = {"exchange": "amq.topic", "schema": ORDER, "quarantine": "quarantine"}
    gateway.vhost.interception.apply([validator(PLUGIN, **rule)])
    peer.send(published("order.new", b'{"id": 1}'), published("order.new", b'{"id": "x"}', headers={"shop": 7}))
    peer.receive()
    assert all_of(peer, "orders") == [b'{"id": 1}']
    headers = properties_of(fetched(peer, "quarantine")).headers
    assert headers == {
        "shop": 7,
        "x-quarantine-reason": 'the body is invalid: $.id: "x" is not of type "integer"',
        "x-quarantine-exchange": "amq.topic",
        "x-quarantine-routing-key": "order.new",
    }


def test_a_quarantine_diverts_to_the_default_exchange() -> None:
    decision = validator(PLUGIN, schema=ORDER, quarantine="bad").on_publish(plain_message(body=b"1"), AMQP)
    assert isinstance(decision, Diversion)
    assert (decision.exchange, decision.routing_key) == ("", "bad")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": 1}, r"rule 1: the schema is not valid at \$\.type"),
        ({"pattern": "("}, r"rule 1: the schema is not valid at \$\.pattern"),
        ({"pattern": "(?=a)"}, r"rule 1: the schema is not valid at \$\.pattern"),
        ({"$ref": "http://example.org/x.json"}, "rule 1: the schema is not valid.*other documents are not fetched"),
        ({"$ref": "file:///etc/hostname"}, "rule 1: the schema is not valid.*other documents are not fetched"),
        ({"$ref": "#/$defs/none"}, "rule 1: the schema is not valid"),
        ({"$schema": "http://example.org/none"}, "rule 1: the schema is not valid.*meta-schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_when_the_plugin_is_enabled(schema: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        validator(PLUGIN, schema=schema)
