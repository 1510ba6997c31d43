"""The verbs trace_messages and where_is: requests and texts."""

import json
from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

TRACE: dict[str, Any] = {
    "id": 7,
    "message_id": "m1",
    "where": [{"queue": "q", "state": "ready"}],
    "events": [{"event": "publish", "at": "now", "at_ms": 1, "exchange": "x"}, {"event": "route", "queue": "q"}],
}


def test_a_trace_is_printed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET message-traces/%2F", {"traces": [TRACE]})
    assert ctl("where_is", "m1").out.splitlines() == [
        "Message 7 (m1): q: ready",
        "  now publish exchange=x",
        "   route queue=q",
    ]
    assert api.received[-1].target.partition("?")[2] == "message_id=m1"
    assert json.loads(ctl("where_is", "m1", "--formatter", "json").out) == [TRACE]


def test_a_trace_is_found_by_its_number(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET message-traces/%2F/7", TRACE)
    assert ctl("where_is", "--id", "7").out.startswith("Message 7 (m1): q: ready")


def test_without_a_match_it_fails(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET message-traces/%2F", {"traces": []})
    result = ctl("where_is", "m1")
    assert (result.code, result.err) == (69, "Error: no traced message matches in vhost '/'\n")


@pytest.mark.parametrize(
    ("arguments", "sample"), [(["on"], 1.0), (["on", "--sample", "0.5"], 0.5), (["off"], 0)], ids=str
)
def test_the_sample_is_set(ctl: Ctl, api: FakeApi, arguments: list[str], sample: float) -> None:
    api.answer("PUT message-traces/%2F", None)
    assert ctl("trace_messages", *arguments).code == 0
    assert api.received[-1].body == {"sample": sample}


@pytest.mark.parametrize("arguments", [["where_is", "m", "--id", "1"], ["trace_messages", "off", "--sample", "1"]])
def test_wrong_usage_is_refused(ctl: Ctl, api: FakeApi, arguments: list[str]) -> None:
    assert ctl(*arguments).code == 64
    assert api.received == []
