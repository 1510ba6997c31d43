"""Shovels to and from MQTT, between two gateways in child processes."""

import json
from urllib.error import HTTPError

import pika
import pytest

from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import bodies_in, mqtt_uri_of, put_shovel, shovel_status, uri_of, wait_for_state
from tests.management_client import get
from tests.running import Gateway
from tests.waiting import wait_until

_PERSISTENT = pika.BasicProperties(delivery_mode=2, content_type="text/x", headers={"own": "kept"})


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_a_queue_is_shovelled_to_topics(near: Gateway, far: Gateway, channel_of: ChannelOf, version: str) -> None:
    here, there = channel_of(near), channel_of(far)
    there.queue_declare("q")
    there.queue_bind("q", "amq.topic", "plant.#")
    uri = mqtt_uri_of(far, version)
    options = {"src_exchange": "amq.topic", "src_exchange_key": "#", "src_uri": "amqp://"}
    put_shovel(near, "s", dest_protocol="mqtt", dest_uri=uri, dest_topic_prefix="plant/", **options)
    wait_for_state(near, "s", "running")
    here.basic_publish("amq.topic", "a.b", b"one", _PERSISTENT)
    method, properties, body = wait_until(lambda: got if (got := there.basic_get("q", auto_ack=True))[0] else None)
    assert (body, method.routing_key, properties.delivery_mode) == (b"one", "plant.a.b", 2)
    if version == "5":
        assert (properties.content_type, properties.headers["own"]) == ("text/x", "kept")
    wait_until(lambda: shovel_status(near, "s")["forwarded"] == 1)


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_topics_are_shovelled_to_a_queue(near: Gateway, far: Gateway, channel_of: ChannelOf, version: str) -> None:
    here, there = channel_of(near), channel_of(far)
    uri = mqtt_uri_of(far, version)
    options = {"dest_uri": "amqp://", "dest_queue": "q", "src_delete_after": 2}
    put_shovel(near, "s", src_protocol="mqtt", src_uri=uri, src_topic=["a/#", "b"], **options)
    wait_for_state(near, "s", "running")
    for key in ("a.x", "c", "b"):
        there.basic_publish("amq.topic", key, key.encode(), _PERSISTENT)
    assert bodies_in(here, "q", 2) == [b"a.x", b"b"]
    wait_until(lambda: not get(near, "shovels"))


def test_nothing_is_lost_from_topics_to_topics_when_either_side_is_killed(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here = channel_of(near)
    here.queue_declare("q", durable=True)
    mqtt = {"dest_protocol": "mqtt", "dest_topic": "t", "reconnect_delay": 0.1, "src_prefetch_count": 20}
    put_shovel(near, "out", src_uri="amqp://", src_queue="q", dest_uri=mqtt_uri_of(far), **mqtt)
    back = {"src_topic": "t", "src_protocol": "mqtt", "reconnect_delay": 0.1, "src_prefetch_count": 20}
    put_shovel(near, "in", dest_uri="amqp://", dest_queue="back", src_uri=mqtt_uri_of(far), **back)
    wait_for_state(near, "in", "running")
    confirmed = 0
    for killed in (far, near, far):
        channel = channel_of(near)
        for _ in range(100):
            channel.basic_publish("", "q", b"%d" % confirmed, _PERSISTENT)
            confirmed += 1
        killed.restart()
    channel = channel_of(near)
    arrived: set[int] = set()

    def all_arrived() -> bool:
        while (got := channel.basic_get("back", auto_ack=True))[0] is not None:
            arrived.add(int(got[2]))
        return len(arrived) == confirmed

    wait_until(all_arrived, lambda: f"{confirmed - len(arrived)} of {confirmed} messages are lost\n{near.log}")
    assert arrived == set(range(confirmed))


def test_a_server_that_refuses_the_login_is_reported(near: Gateway, far: Gateway) -> None:
    uri = mqtt_uri_of(far).replace(":guest@", ":wrong@")
    put_shovel(near, "s", src_protocol="mqtt", src_uri=uri, src_topic="t", dest_uri="amqp://")
    status = wait_for_state(near, "s", "terminated")
    assert "user name or password" in status["reason"]
    put_shovel(near, "s", src_protocol="mqtt", src_uri="mqtt://127.0.0.1:1", src_topic="t", dest_uri="amqp://")
    wait_until(lambda: "cannot be reached" in shovel_status(near, "s").get("reason", ""))
    assert shovel_status(near, "s")["state"] == "terminated"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, 'Key "src-topic" not found in s'),
        ({"src_topic": "a#"}, 'src-topic should be a topic filter, actually was <<"a#">>'),
        ({"src_topic": "t", "src_qos": 3}, "src-qos should be 0, 1 or 2, actually was 3"),
        ({"src_topic": "t", "delete_after": "queue-length"}, "Cannot specify 'queue-length'"),
        ({"src_topic": "t", "src_queue": "q"}, "Unrecognised terms"),
        ({"src_topic": "t", "src_uri": "mqtt://h/v"}, "an MQTT URI has no path"),
        ({"src_topic": "t", "src_uri": "mqtt://h?version=4"}, "version is neither 3.1.1 nor 5"),
    ],
)
def test_an_invalid_shovel_is_refused(near: Gateway, changes: dict[str, object], fault: str) -> None:
    value = {"src_uri": "mqtt://h", "src_protocol": "mqtt", "dest_uri": uri_of(near), **changes}
    with pytest.raises(HTTPError) as refusal:
        put_shovel(near, "s", **value)
    assert fault in json.load(refusal.value)["reason"]
