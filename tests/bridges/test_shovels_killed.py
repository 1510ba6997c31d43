"""A shovel in mode on-confirm loses nothing when either broker is killed."""

import random
from collections.abc import Callable

import pika

from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import put_shovel, shovel_status, uri_of
from tests.running import Gateway
from tests.waiting import wait_until

_PERSISTENT = pika.BasicProperties(delivery_mode=2)
_BATCH = 200


def test_no_confirmed_message_is_lost_when_either_side_is_killed(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    rng = random.Random()
    options = {"src_queue": "q", "dest_queue": "m", "reconnect_delay": 0.1, "src_prefetch_count": 50}
    put_shovel(near, "s", src_uri="amqp://", dest_uri=uri_of(far), **options)
    channel_of(near).queue_declare("q", durable=True)
    confirmed = 0
    for killed in (near, far, near, far):
        here = channel_of(near)
        for _ in range(_BATCH):
            here.basic_publish("", "q", b"%d" % confirmed, _PERSISTENT)
            confirmed += 1
        forwarded = rng.randrange(_BATCH)
        wait_until(_has_forwarded(near, forwarded), near.log)
        killed.restart()
    there = channel_of(far)
    arrived: set[int] = set()

    def all_arrived() -> bool:
        while (got := there.basic_get("m", auto_ack=True))[0] is not None:
            arrived.add(int(got[2]))
        return len(arrived) == confirmed

    wait_until(all_arrived, lambda: f"{confirmed - len(arrived)} of {confirmed} messages are lost")
    assert arrived == set(range(confirmed))


def _has_forwarded(near: Gateway, count: int) -> Callable[[], bool]:
    """Return a condition: the current run of the shovel has moved this many messages, or all that there were."""

    def condition() -> bool:
        status = shovel_status(near, "s")
        return status["state"] == "running" and (status["forwarded"] >= count or not status["pending"])

    return condition
