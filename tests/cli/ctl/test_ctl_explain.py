"""The verb explain: its request and its text."""

import json
from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

ANSWER: dict[str, Any] = {
    "outcome": "routed",
    "allowed": False,
    "user": "al",
    "exchange": "x",
    "routing_keys": ["k"],
    "checks": [{"check": "vhost", "allowed": True}, {"check": "write", "allowed": False, "reason": "no"}],
    "exchanges": [
        {
            "name": "x",
            "type": "direct",
            "plugin": "exchange-direct",
            "policy": "p",
            "bindings_tried": 2,
            "bindings_matched": 1,
            "bindings": [
                {"routing_key": "k", "destination": "q", "destination_type": "queue", "matched": True},
                {"routing_key": "l", "destination": "q", "destination_type": "queue", "arguments": {"a": 1}},
            ],
        }
    ],
    "queues": [{"name": "q", "type": "quorum", "refusal": "maxlen"}],
}

TEXT = """\
Outcome: routed, but the publish is refused
Publish of user al to exchange 'x' with routing keys ["k"]
  check vhost: allowed
  check write: refused: no
Exchange 'x' (direct by plugin exchange-direct), policy 'p': 1 of 2 bindings match
  + 'k' -> queue 'q'
  - 'l' {"a":1} -> queue 'q'
Queue 'q' (quorum): would refuse the message: maxlen
"""


def test_an_explanation_is_printed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("POST explain/%2F", ANSWER)
    assert ctl("explain", "x", "k").out == TEXT
    assert json.loads(ctl("explain", "x", "k", "--formatter", "json").out) == ANSWER


REQUESTS = [
    (["x", "k", "--user", "al"], {"exchange": "x", "routing_key": "k", "user": "al"}),
    (["--mqtt-topic", "a/b", "--client-id", "c"], {"mqtt_topic": "a/b", "client_id": "c"}),
    (["--stomp-destination", "/topic/a"], {"stomp_destination": "/topic/a"}),
    (
        ["x", "k", "--header", "a=b=c", "--properties", '{"priority":1}'],
        {"exchange": "x", "routing_key": "k", "headers": {"a": "b=c"}, "properties": {"priority": 1}},
    ),
]


@pytest.mark.parametrize(("arguments", "fields"), REQUESTS)
def test_the_request_has_the_fields(ctl: Ctl, api: FakeApi, arguments: list[str], fields: Any) -> None:
    api.answer("POST explain/%2F", ANSWER)
    assert ctl("explain", *arguments).code == 0
    assert api.received[-1].body == fields


@pytest.mark.parametrize("arguments", [[], ["x", "k", "--mqtt-topic", "t"], ["x", "k", "--header", "=v"]])
def test_wrong_usage_is_refused(ctl: Ctl, api: FakeApi, arguments: list[str]) -> None:
    assert ctl("explain", *arguments).code == 64
    assert api.received == []
