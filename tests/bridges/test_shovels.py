"""Shovels between two gateways in child processes."""

import json
from urllib.error import HTTPError

import pika
import pytest

from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import bodies_in, length_of, put_shovel, shovel_status, uri_of, wait_for_state
from tests.management_client import get, put, request
from tests.running import Gateway
from tests.waiting import wait_until


@pytest.mark.parametrize("ack_mode", ["on-confirm", "on-publish", "no-ack"])
def test_a_shovel_moves_messages_in_order_to_another_broker(
    near: Gateway, far: Gateway, channel_of: ChannelOf, ack_mode: str
) -> None:
    here, there = channel_of(near), channel_of(far)
    here.queue_declare("q", durable=True)
    for number in range(50):
        here.basic_publish("", "q", b"%d" % number, pika.BasicProperties(delivery_mode=2, headers={"n": number}))
    options = {"ack_mode": ack_mode, "src_queue": "q", "dest_queue": "moved"}
    put_shovel(near, "s", src_uri="amqp://", dest_uri=uri_of(far), **options)
    wait_for_state(near, "s", "running")
    assert bodies_in(there, "moved", 50) == [b"%d" % number for number in range(50)]
    wait_until(lambda: length_of(here, "q") == 0 and shovel_status(near, "s")["pending"] == 0)
    status = shovel_status(near, "s")
    assert status["forwarded"] == 50
    assert status["src_uri"] == "amqp://"
    assert {"vhost", "name", "type", "node", "state"} <= status.keys()  # the labels of rabbitmq_exporter
    assert status["dest_uri"] == uri_of(far).replace("guest:guest@", "")


def test_an_exchange_is_shovelled_with_properties_and_headers(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here, there = channel_of(near), channel_of(far)
    put_shovel(
        near,
        "s",
        src_uri=[uri_of(far)],
        src_exchange="amq.topic",
        src_exchange_key="a.#",
        dest_uri="amqp://",
        dest_exchange="amq.fanout",
        dest_exchange_key="new",
        dest_add_forward_headers=True,
        dest_add_timestamp_header=True,
        dest_publish_properties={"content_type": "text/x", "delivery_mode": 2},
    )
    here.queue_declare("q")
    here.queue_bind("q", "amq.fanout")
    wait_for_state(near, "s", "running")
    there.basic_publish("amq.topic", "a.b", b"one", pika.BasicProperties(user_id="guest", headers={"own": "kept"}))
    method, properties, body = wait_until(lambda: got if (got := here.basic_get("q", auto_ack=True))[0] else None)
    assert (body, method.routing_key, properties.content_type, properties.user_id) == (b"one", "new", "text/x", "guest")
    assert properties.headers["own"] == "kept"
    assert isinstance(properties.headers["x-shovelled-timestamp"], int)
    (entry,) = properties.headers["x-shovelled"]
    assert entry["shovel-name"] == "s"
    assert entry["src-exchange-key"] == "a.#"
    assert "guest:guest" not in entry["src-uri"]


@pytest.mark.parametrize("after", [3, "queue-length"])
def test_a_shovel_deletes_itself_after_its_messages(
    near: Gateway, far: Gateway, channel_of: ChannelOf, after: object
) -> None:
    here, there = channel_of(near), channel_of(far)
    here.queue_declare("q", durable=True)
    count = 5 if after == 3 else 3
    for number in range(count):
        here.basic_publish("", "q", b"%d" % number)
    put_shovel(
        near, "s", src_uri="amqp://", src_queue="q", src_delete_after=after, dest_uri=uri_of(far), dest_queue="m"
    )
    wait_until(lambda: not get(near, "parameters/shovel"), lambda: str(shovel_status(near, "s")) + near.log)
    assert not shovel_status(near, "s")
    assert bodies_in(there, "m", 3) == [b"0", b"1", b"2"]
    wait_until(lambda: length_of(here, "q") == count - 3)


def test_a_shovel_reports_why_it_is_terminated_and_tries_again(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    options = {"src_uri": "amqp://", "src_queue": "q", "dest_queue": "m", "reconnect_delay": 0.1}
    put_shovel(near, "s", dest_uri=uri_of(far).replace(":guest@", ":wrong@"), **options)
    wait_until(lambda: "ACCESS_REFUSED" in shovel_status(near, "s").get("reason", ""), lambda: near.log)
    put_shovel(near, "s", dest_uri=["amqp://127.0.0.1:1", uri_of(far)], **options)
    wait_for_state(near, "s", "running")
    far.kill()
    wait_until(lambda: shovel_status(near, "s")["state"] != "running")
    far.start()
    wait_for_state(near, "s", "running")
    channel_of(near).basic_publish("", "q", b"late")
    assert bodies_in(channel_of(far), "m", 1) == [b"late"]


def test_a_shovel_survives_a_restart_and_stops_when_it_is_deleted(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    put_shovel(near, "s", src_uri="amqp://", src_queue="q", dest_uri=uri_of(far), dest_queue="m")
    wait_for_state(near, "s", "running")
    near.restart()
    wait_for_state(near, "s", "running")
    request(near, "DELETE", "shovels/vhost/%2F/s/restart")
    wait_for_state(near, "s", "running")
    request(near, "DELETE", "shovels/vhost/%2F/s")
    assert get(near, "shovels/%2F") == []
    wait_until(lambda: not get(near, "connections"))
    here = channel_of(near)
    here.basic_publish("", "q", b"stays")
    assert length_of(here, "q") == 1
    assert near.stop() == 0


def test_messages_wait_while_the_destination_is_full(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here, there = channel_of(near), channel_of(far)
    limits = {"x-max-length": 1, "x-overflow": "reject-publish"}
    put_shovel(
        near,
        "s",
        src_uri="amqp://",
        src_queue="q",
        dest_uri=uri_of(far),
        dest_queue="m",
        dest_queue_args=limits,
        src_prefetch_count=1,
    )
    wait_for_state(near, "s", "running")
    for body in (b"1", b"2"):
        here.basic_publish("", "q", body)
    assert bodies_in(there, "m", 2) == [b"1", b"2"]


def test_an_invalid_shovel_is_refused_and_an_import_with_it_changes_nothing(near: Gateway) -> None:
    with pytest.raises(HTTPError) as refusal:
        put_shovel(near, "s", src_uri="amqp://", dest_uri="amqp://")
    assert json.load(refusal.value)["reason"] == "Validation failed\n\nMust specify 'src-exchange' or 'src-queue'\n"
    parameter = {"vhost": "/", "component": "shovel", "name": "s", "value": {"src-uri": "amqp://"}}
    queue = {"vhost": "/", "name": "new", "durable": True, "auto_delete": False, "arguments": {}}
    with pytest.raises(HTTPError) as refusal:
        request(near, "POST", "definitions", {"queues": [queue], "parameters": [parameter]})
    assert "parameters[0]: Validation failed" in json.load(refusal.value)["reason"]
    assert get(near, "queues") == get(near, "parameters") == []


def test_a_user_shovels_only_between_virtual_hosts_with_access(near: Gateway) -> None:
    put(near, "vhosts/other", {})
    put(near, "permissions/other/guest", {"configure": "", "write": "", "read": ""})
    put_shovel(near, "s", src_uri="amqp:///other", src_queue="q", dest_uri="amqp://")
    wait_for_state(near, "s", "running")
    request(near, "DELETE", "permissions/other/guest")
    for vhost in ("other", "none"):
        with pytest.raises(HTTPError) as refusal:
            put_shovel(near, "t", src_uri=f"amqp:///{vhost}", src_queue="q", dest_uri="amqp://")
        reason = json.load(refusal.value)["reason"]
        assert reason == f'Validation failed\n\nuser "guest" may not connect to vhost "{vhost}"\n'
    request(near, "DELETE", "vhosts/other")
    wait_for_state(near, "s", "terminated")
