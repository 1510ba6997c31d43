"""Expired messages that leave wherever they stand (R158 the other way round): ``x-expire-mode=anywhere``."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import Stage


def arrange(stage: Stage, **arguments: Value) -> None:
    stage.queue("dead")
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    stage.queue(
        "q",
        {
            "x-expire-mode": "anywhere",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
            **others,
        },
    )


def test_a_message_expires_before_earlier_ones(stage: Stage) -> None:
    arrange(stage)
    stage.publish(b"lasting")
    for milliseconds in (300, 100, 200):
        stage.publish(b"%d" % milliseconds, expiration=str(milliseconds))
    stage.publish(b"last")
    for _ in range(3):
        stage.advance(100)
    assert [dead.died for dead in stage.drain("dead")] == [[("q", "expired", 1)]] * 3
    assert stage.bodies() == [b"lasting", b"last"]


def test_messages_expire_at_the_head_by_default(stage: Stage) -> None:
    stage.queue("q", {"x-expire-mode": "head"})
    stage.publish(b"lasting")
    stage.publish(b"short", expiration="10")
    stage.advance(100)
    assert stage.ready() == 2


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
def test_messages_in_the_middle_of_a_long_queue_expire(stage: Stage, delivery_mode: int) -> None:
    arrange(stage)
    for number in range(4000):
        expiration = "1000" if number % 3 == 1 else None
        publish(stage, number, expiration, delivery_mode)
    stage.advance(1000)
    stage.advance(1000)
    assert stage.ready() == 4000 - 1333
    assert stage.ready("dead") == 1333
    assert [int(received.body) for received in stage.drain("q")] == [n for n in range(4000) if n % 3 != 1]


def publish(stage: Stage, number: int, expiration: str | None, delivery_mode: int) -> None:
    stage.publish(b"%d" % number, expiration=expiration, delivery_mode=delivery_mode)


def test_a_restart_keeps_expiry_times(stage: Stage) -> None:
    arrange(stage)
    stage.publish(b"lasting", delivery_mode=2)
    stage.publish(b"short", delivery_mode=2, expiration="1000")
    stage.restart()
    stage.advance(999)
    assert stage.ready() == 2
    stage.advance(1)
    assert stage.bodies() == [b"lasting"]
    assert stage.bodies("dead") == [b"short"]


def test_an_unacknowledged_message_expires_when_it_is_requeued(stage: Stage) -> None:
    arrange(stage)
    stage.publish(b"held", expiration="100")
    held = stage.get()
    stage.advance(200)
    assert stage.ready("dead") == 0
    stage.client.settle(held, DeliveryOutcome.REQUEUED)
    stage.advance(0)
    assert stage.bodies("dead") == [b"held"]


def test_low_priority_messages_expire_independently_of_higher_ones(stage: Stage) -> None:
    """R80 the other way round."""
    arrange(stage, x_max_priority=5, x_message_ttl=1000)
    stage.publish(b"old", priority=1)
    stage.advance(500)
    stage.publish(b"young", priority=5)
    stage.publish(b"own", priority=5, expiration="100")
    stage.advance(100)
    assert stage.bodies("dead") == [b"own"]
    stage.advance(400)
    assert stage.bodies("dead") == [b"old"]
    assert stage.bodies() == [b"young"]


def test_a_policy_shortens_the_time_to_live_of_waiting_messages(stage: Stage) -> None:
    arrange(stage, x_max_priority=5)
    stage.publish(b"high", priority=5)
    stage.publish(b"low", priority=1, expiration="5000")
    stage.advance(100)
    stage.policy({"message-ttl": 50})
    stage.advance(0)
    assert stage.ready() == 0


def test_consumed_messages_leave_no_stale_entries(stage: Stage) -> None:
    arrange(stage)
    for number in range(3000):
        publish(stage, number, "3600000", 1)
        stage.client.settle(stage.get(), DeliveryOutcome.ACCEPTED)
    stage.advance(7_200_000)
    assert stage.ready("dead") == 0
