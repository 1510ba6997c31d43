"""Shovels to and from STOMP, between two gateways in child processes."""

import pika

from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import bodies_in, put_shovel, shovel_status, stomp_uri_of, wait_for_state
from tests.management_client import get
from tests.running import Gateway
from tests.waiting import wait_until

_PERSISTENT = pika.BasicProperties(
    delivery_mode=2, content_type="text/x", headers={"own": "kept", "n": 1}, correlation_id="c", priority=3
)


def test_a_queue_is_shovelled_to_a_destination(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here, there = channel_of(near), channel_of(far)
    stomp = {"dest_protocol": "stomp", "dest_destination": "/queue/moved"}
    put_shovel(near, "s", src_uri="amqp://", src_queue="q", dest_uri=stomp_uri_of(far), **stomp)
    wait_for_state(near, "s", "running")
    here.basic_publish("", "q", b"\x00one", _PERSISTENT)
    there.queue_declare("moved", durable=True)
    _, properties, body = wait_until(lambda: got if (got := there.basic_get("moved", auto_ack=True))[0] else None)
    assert (body, properties.content_type, properties.correlation_id) == (b"\x00one", "text/x", "c")
    assert (properties.headers["own"], properties.headers["n"], properties.delivery_mode) == ("kept", "1", 2)
    wait_until(lambda: shovel_status(near, "s")["forwarded"] == 1)


def test_a_destination_is_shovelled_to_a_queue(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here, there = channel_of(near), channel_of(far)
    there.queue_declare("out", durable=True)
    for number in range(5):
        there.basic_publish("", "out", b"%d" % number, _PERSISTENT)
    stomp = {"src_protocol": "stomp", "src_destination": "/queue/out", "src_delete_after": 3}
    put_shovel(near, "s", src_uri=stomp_uri_of(far), dest_uri="amqp://", dest_queue="q", **stomp)
    wait_until(lambda: not get(near, "shovels") and get(near, "parameters") == [], lambda: near.log)
    method, properties, body = here.basic_get("q", auto_ack=True)
    assert (body, properties.headers["own"], properties.delivery_mode) == (b"0", "kept", 2)
    assert method is not None
    assert bodies_in(here, "q", 2) == [b"1", b"2"]
    assert sorted(bodies_in(there, "out", 2)) == [b"3", b"4"]


def test_nothing_is_lost_when_the_server_is_killed(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here = channel_of(near)
    options = {"reconnect_delay": 0.1, "src_prefetch_count": 20}
    out = {"dest_protocol": "stomp", "dest_destination": "/queue/m", "src_uri": "amqp://", "src_queue": "q"}
    back = {"src_protocol": "stomp", "src_destination": "/queue/m", "dest_uri": "amqp://", "dest_queue": "back"}
    put_shovel(near, "out", dest_uri=stomp_uri_of(far), **out, **options)
    put_shovel(near, "in", src_uri=stomp_uri_of(far), **back, **options)
    wait_for_state(near, "out", "running")
    confirmed = 0
    for _ in range(2):
        for _ in range(100):
            here.basic_publish("", "q", b"%d" % confirmed, _PERSISTENT)
            confirmed += 1
        far.restart()
    arrived: set[int] = set()

    def all_arrived() -> bool:
        while (got := here.basic_get("back", auto_ack=True))[0] is not None:
            arrived.add(int(got[2]))
        return len(arrived) == confirmed

    wait_until(all_arrived, lambda: f"{confirmed - len(arrived)} of {confirmed} messages are lost\n{near.log}")
    assert arrived == set(range(confirmed))


def test_a_server_that_cannot_be_used_is_reported(near: Gateway, far: Gateway) -> None:
    stomp = {"src_protocol": "stomp", "src_destination": "/queue/out", "dest_uri": "amqp://"}
    put_shovel(near, "s", src_uri=stomp_uri_of(far).replace(":guest@", ":wrong@"), **stomp)
    assert wait_for_state(near, "s", "terminated")["reason"]
    put_shovel(near, "s", src_uri="stomp://127.0.0.1:1", **stomp)
    assert wait_for_state(near, "s", "terminated")["reason"]
