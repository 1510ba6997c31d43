"""``peek``: a message at a position of a queue."""

import json

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

MESSAGE = {
    "id": 7,
    "state": "ready",
    "delivery_count": 0,
    "exchange": "",
    "routing_key": "qq",
    "properties": {"message_id": "m1", "delivery_mode": 2, "headers": {"a": 1}},
    "payload": "hello",
}


def test_the_message_is_printed_as_by_rabbitmq_queues(ctl: Ctl, api: FakeApi) -> None:
    api.answer("POST workbench/%2F/qq/search", {"messages": [MESSAGE | {"payload": "first"}, MESSAGE]})
    assert json.loads(ctl("peek", "qq", "2", "--formatter=json").out) == {
        "result": "ok",
        "message": {
            "message_id": "m1",
            "delivery_mode": 2,
            "routing_keys": ["qq"],
            "exchange": "",
            "payload (max 64 bytes)": "hello",
            "header.a": 1,
            "header.x-delivery-count": 0,
        },
    }
    sent = {"filter": {"states": ["ready"]}, "truncate": 64, "limit": 2}
    assert api.changes() == [("POST workbench/%2F/qq/search", sent)]
    assert "message_id\tm1" in ctl("peek", "qq", "2").out


def test_a_position_behind_the_last_message_is_an_error(ctl: Ctl, api: FakeApi) -> None:
    api.answer("POST workbench/%2F/qq/search", {"messages": [MESSAGE], "cursor": None})
    result = ctl("peek", "qq", "2")
    assert (result.code, result.err) == (69, "Error: Target queue does not have a message at that position\n")


def test_a_missing_queue_is_named(ctl: Ctl) -> None:
    result = ctl("peek", "nope", "1")
    assert (result.code, result.err) == (69, "Error: queue 'nope' does not exist in vhost '/'\n")
    assert ctl("peek", "nope", "0").code == 64
