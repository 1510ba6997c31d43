"""Over HTTP, values that are too long, too deep, too large or not Unicode are refused with 400 and not stored."""

import json

import pytest

from gateway.management.http.bodies import parse_object
from gateway.management.http.errors import HttpError
from tests.management.console import Console

HUGE = str(10**400)
HALF = r'"\ud800"'
DEEP = "[" * 330 + "]" * 330


TTL, LIMIT = "message-ttl", "max-length"


def policy(key: str = LIMIT, value: str = "1", pattern: str = "x", priority: str = "1") -> str:
    """Return a policy as JSON; ``value`` and ``priority`` are JSON, too."""
    pattern_json = json.dumps(pattern)
    return f'{{"pattern": {pattern_json}, "priority": {priority}, "definition": {{"{key}": {value}}}}}'


def arguments(name: str, value: str, **others: object) -> str:
    others_json = json.dumps(others)[1:-1]
    return f'{{{others_json + ", " if others_json else ""}"arguments": {{"{name}": {value}}}}}'


LONG_KEY = json.dumps("k" * 60_000)

REFUSED = [
    pytest.param("/policies/%2F/p", policy(TTL, HUGE), id="policy: ttl"),
    pytest.param("/policies/%2F/p", policy("expires", HUGE), id="policy: expires"),
    pytest.param("/policies/%2F/p", policy(priority=HUGE), id="policy: priority"),
    pytest.param("/policies/%2F/p", policy("dead-letter-routing-key", HALF), id="policy: lone surrogate"),
    pytest.param("/policies/%2F/p", policy("dead-letter-routing-key", LONG_KEY), id="policy: long key"),
    pytest.param("/policies/%2F/p", policy(pattern=r"(a)\1"), id="policy: backreference"),
    pytest.param("/operator-policies/%2F/p", policy("expires", HUGE), id="operator policy: expires"),
    pytest.param("/queues/%2F/q", arguments("x-any", DEEP), id="queue: deep"),
    pytest.param("/queues/%2F/q", arguments("x-max-length", HUGE), id="queue: huge"),
    pytest.param("/queues/%2F/q", arguments("x-any", HALF), id="queue: lone surrogate"),
    pytest.param("/queues/%2F/q", arguments("x-dead-letter-exchange", LONG_KEY), id="queue: long exchange"),
    pytest.param("/exchanges/%2F/x", arguments("a", DEEP, type="direct"), id="exchange: deep"),
    pytest.param("/global-parameters/p", f'{{"value": {DEEP}}}', id="global parameter: deep"),
    pytest.param("/global-parameters/p", f'{{"value": {HUGE}}}', id="global parameter: huge"),
    pytest.param("/global-parameters/p", f'{{"value": {HALF}}}', id="global parameter: lone surrogate"),
    pytest.param("/vhosts/" + "v" * 256, "{}", id="vhost: long name"),
    pytest.param("/users/" + "u" * 256, '{"password": "p", "tags": ""}', id="user: long name"),
    pytest.param("/permissions/%2F/guest", '{"configure": "a(?=c)", "write": "", "read": ""}', id="permission"),
]


@pytest.mark.parametrize(("path", "content"), REFUSED)
def test_a_value_above_a_limit_is_refused_and_not_stored(console: Console, path: str, content: str) -> None:
    before = console.ask("GET", "/definitions").json
    answer = console.ask("PUT", path, content=content.encode())
    assert answer.status == 400, answer.result
    assert console.ask("GET", "/definitions").json == before


def test_bindings_can_be_listed_after_one_with_a_lone_surrogate_was_refused(console: Console) -> None:
    console.ask("PUT", "/queues/%2F/q", {})
    answer = console.ask("POST", "/bindings/%2F/e/amq.topic/q/q", content=b'{"routing_key": "\\ud800"}')
    assert answer.status == 400
    assert console.ask("GET", "/bindings").status == 200


COUNTLESS = [
    pytest.param('{"a": [' + "{}," * 200_000 + "1]}", id="objects"),
    pytest.param('{"a": [' + "0," * 200_000 + "1]}", id="numbers"),
    pytest.param('{"a": [' + '"",' * 200_000 + "1]}", id="strings"),
    pytest.param('{"a": [' + r'"\\",' * 200_000 + "1]}", id="strings that end with a backslash"),
    pytest.param("{" + ",".join(f'"{number}": 1' for number in range(200_000)) + "}", id="fields"),
]


@pytest.mark.parametrize("content", COUNTLESS)
def test_values_of_a_long_body_are_counted_before_they_take_memory(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("they are read"))
    with pytest.raises(HttpError, match="more than 100000 values"):
        parse_object(content.encode())


def test_separators_inside_a_string_are_not_values() -> None:
    payload = json.dumps([{"a": "b", "c": 1}] * 50_000)
    assert parse_object(json.dumps({"payload": payload}).encode()) == {"payload": payload}


def test_headers_of_a_message_have_a_bounded_number_of_values(console: Console) -> None:
    fields = {
        "properties": {"headers": {"a": [0] * 10_001}},
        "routing_key": "k",
        "payload": "",
        "payload_encoding": "string",
    }
    answer = console.ask("POST", "/exchanges/%2F/amq.direct/publish", fields)
    assert answer.status == 400
    assert answer.json["reason"] == "invalid message: 10003 values in its headers are more than 10000"
