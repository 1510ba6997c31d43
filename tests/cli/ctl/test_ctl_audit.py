"""``gatewayctl audit``."""

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

ENTRY = {
    "number": 3,
    "at": "2026-11-24T08:00:00.000+00:00",
    "user": "guest",
    "address": "127.0.0.1",
    "surface": "CLI",
    "action": "user.created",
    "vhost": "",
    "subject": "bob",
    "before": None,
    "after": {"tags": ["x"]},
}


def test_entries_are_listed_with_the_filters_as_query(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET audit", {"items": [ENTRY], "page_count": 1})
    result = ctl("audit", "number", "subject", "--user", "guest", "--action", "user.*", "--limit", "5", "-q")
    assert (result.code, result.out) == (0, "number\tsubject\n3\tbob\n")
    assert api.received[-1].target == "/api/audit?user=guest&action=user.%2A&page=1&page_size=5"


def test_states_are_nested_in_json(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET audit", {"items": [ENTRY], "page_count": 1})
    result = ctl("audit", "after", "-p", "v1", "--formatter", "json")
    assert (result.code, result.out) == (0, '[\n{"after":{"tags":["x"]}}\n]\n')
