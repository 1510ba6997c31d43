"""Mosquitto's bridge between two gateways in child processes, and its rules."""

import json
from typing import Any
from urllib.error import HTTPError

import pika
import pytest

from gateway.bridges.mqtt_bridge_rules import BridgeRule, matches, parse_rule
from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import bodies_in, length_of, mqtt_uri_of, wait_for_state
from tests.management_client import put
from tests.running import Gateway
from tests.waiting import wait_until

_PERSISTENT = pika.BasicProperties(delivery_mode=2)


def put_bridge(gateway: Gateway, **value: Any) -> None:
    put(gateway, "parameters/mqtt-bridge/%2F/b", {"value": {k.replace("_", "-"): v for k, v in value.items()}})


def test_topics_go_both_ways_with_prefixes_and_do_not_come_back(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here, there = channel_of(near), channel_of(far)
    for channel in (here, there):
        channel.queue_declare("all")
        channel.queue_bind("all", "amq.topic", "#")
    put_bridge(near, address=mqtt_uri_of(far, "5"), topics=["t/# both 1 here/ there/", "only/in in 1"])
    wait_for_state(near, "b", "running")
    here.basic_publish("amq.topic", "here.t.a", b"out", _PERSISTENT)
    here.basic_publish("amq.topic", "other", b"stays", _PERSISTENT)
    there.basic_publish("amq.topic", "there.t.b", b"in", _PERSISTENT)
    there.basic_publish("amq.topic", "only.in", b"only", _PERSISTENT)
    expected_here = {("here.t.a", b"out"), ("other", b"stays"), ("here.t.b", b"in"), ("only.in", b"only")}
    expected_there = {("there.t.a", b"out"), ("there.t.b", b"in"), ("only.in", b"only")}
    for channel, expected in ((here, expected_here), (there, expected_there)):
        wait_until(lambda channel=channel, expected=expected: length_of(channel, "all") >= len(expected), near.log)
        got = [channel.basic_get("all", auto_ack=True) for _ in expected]
        assert {(each[0].routing_key, each[2]) for each in got} == expected
    here.basic_publish("amq.topic", "here.t.last", b"last", _PERSISTENT)
    assert bodies_in(there, "all", 1) == bodies_in(here, "all", 1) == [b"last"]
    assert length_of(here, "all") == length_of(there, "all") == 0


def test_separate_topics_go_in_and_out_with_an_earlier_version(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here, there = channel_of(near), channel_of(far)
    for channel, key in ((here, "i.#"), (there, "o.#")):
        channel.queue_declare("q")
        channel.queue_bind("q", "amq.topic", key)
    put_bridge(near, address=mqtt_uri_of(far), topics=["i/# in 1", "o/# out 1"])
    wait_for_state(near, "b", "running")
    here.basic_publish("amq.topic", "o.a", b"out", _PERSISTENT)
    there.basic_publish("amq.topic", "i.a", b"in", _PERSISTENT)
    assert (bodies_in(there, "q", 1), bodies_in(here, "q", 1)) == ([b"out"], [b"in"])


def test_a_line_with_both_directions_needs_a_bridge_or_version_5(near: Gateway, far: Gateway) -> None:
    put_bridge(near, address=mqtt_uri_of(far), topics="# both 1")
    assert "needs version=5" in wait_for_state(near, "b", "terminated")["reason"]


def test_messages_wait_while_the_other_broker_is_down(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    there = channel_of(far)
    there.queue_declare("all", durable=True)
    there.queue_bind("all", "amq.topic", "#")
    put_bridge(near, address=mqtt_uri_of(far), topics="# out 1", reconnect_delay=0.1)
    wait_for_state(near, "b", "running")
    far.kill()
    here = channel_of(near)
    for number in range(20):
        here.basic_publish("amq.topic", "a", b"%d" % number, _PERSISTENT)
    near.restart()
    far.start()
    assert set(bodies_in(channel_of(far), "all", 20)) == {b"%d" % number for number in range(20)}


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("#", BridgeRule("#", "out", 0, "", "")),
        ("a/+ in", BridgeRule("a/+", "in", 0, "", "")),
        ('a both 2 "" r/', BridgeRule("a", "both", 2, "", "r/")),
    ],
)
def test_a_line_of_mosquitto(line: str, rule: BridgeRule) -> None:
    assert parse_rule(line) == rule


@pytest.mark.parametrize("line", ["", "a sideways", "a in 3", "a in 1 x", "a in 1 + y", "a# in", "a b c d e f"])
def test_an_invalid_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_rule(line)


@pytest.mark.parametrize(
    ("filter", "topic", "expected"),
    [("#", "a/b", True), ("a/#", "a", True), ("a/+", "a/b", True), ("a/+", "a/b/c", False), ("a", "b", False)],
)
def test_a_filter_matches_topics(filter: str, topic: str, expected: bool) -> None:
    assert matches(filter, topic) is expected


def test_names_change_with_the_prefixes() -> None:
    rule = parse_rule("t/# both 1 here/ there/")
    assert (rule.remote_topic("here/t/a"), rule.local_topic("there/t/a")) == ("there/t/a", "here/t/a")


def test_an_invalid_bridge_is_refused(near: Gateway) -> None:
    with pytest.raises(HTTPError) as refusal:
        put_bridge(near, address="mqtt://h", topics=["a sideways"])
    assert "'sideways' is not a direction" in json.load(refusal.value)["reason"]
