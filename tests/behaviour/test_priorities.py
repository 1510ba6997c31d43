"""Queues that serve the highest priority first (R45, R69, R76-R81).

Rules: R46.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import Stage


def prioritized(stage: Stage, highest: int = 10, **arguments: Value) -> None:
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    stage.queue("q", {"x-max-priority": highest, **others})


def publish(stage: Stage, *said: tuple[bytes, int | None], delivery_mode: int = 2) -> None:
    for body, priority in said:
        stage.publish(body, priority=priority, delivery_mode=delivery_mode)


def test_r76_without_the_argument_priority_is_ignored(stage: Stage) -> None:
    stage.queue("q")
    publish(stage, (b"a", 0), (b"b", 9), (b"c", 4))
    assert stage.bodies() == [b"a", b"b", b"c"]


def test_r77_higher_priorities_come_first_none_is_zero_and_excess_is_the_maximum(stage: Stage) -> None:
    prioritized(stage, 5)
    publish(stage, (b"none", None), (b"zero", 0), (b"two", 2), (b"most", 5), (b"more", 200), (b"too", 5))
    assert stage.bodies() == [b"most", b"more", b"too", b"two", b"none", b"zero"]


def test_r78_a_policy_cannot_enable_priorities(stage: Stage) -> None:
    stage.queue("q")
    with pytest.raises(PreconditionFailed, match="not recognised policy settings"):
        stage.policy({"max-priority": 10})
    publish(stage, (b"low", 1), (b"high", 9))
    assert stage.bodies() == [b"low", b"high"]


def test_r79_prefetched_messages_are_not_reordered(stage: Stage) -> None:
    prioritized(stage)
    publish(stage, (b"a", 1), (b"b", 1))
    stage.client.consume("q", prefetch=1)
    publish(stage, (b"urgent", 9))
    (first,) = stage.client.received()
    stage.client.settle(first, DeliveryOutcome.ACCEPTED)
    (second,) = stage.client.received()
    assert (first.body, second.body) == (b"a", b"urgent")


def test_r80_expired_messages_wait_behind_live_ones_of_higher_priority_and_count(stage: Stage) -> None:
    prioritized(stage)
    stage.publish(b"stale", priority=1, expiration="10")
    stage.publish(b"live", priority=5)
    stage.advance(100)
    assert stage.ready() == 2
    assert stage.bodies() == [b"live"]


def test_r69_a_limit_drops_from_the_head_regardless_of_priority(stage: Stage) -> None:
    prioritized(stage, x_max_length=2)
    publish(stage, (b"high", 9), (b"low", 1), (b"middle", 5))
    assert stage.bodies() == [b"middle", b"low"]


def test_r81_within_a_priority_the_order_is_that_of_arrival(stage: Stage) -> None:
    prioritized(stage, 2)
    publish(stage, *((b"%d" % number, number % 3) for number in range(9)))
    assert stage.bodies() == [b"2", b"5", b"8", b"1", b"4", b"7", b"0", b"3", b"6"]


def test_r81_a_requeued_message_returns_to_its_position(stage: Stage) -> None:
    prioritized(stage)
    publish(stage, (b"a1", 1), (b"a5", 5), (b"b5", 5), (b"b1", 1))
    taken = [stage.get() for _ in range(3)]
    publish(stage, (b"c5", 5))
    for received in reversed(taken):
        stage.client.settle(received, DeliveryOutcome.REQUEUED)
    assert stage.bodies() == [b"a5", b"b5", b"c5", b"a1", b"b1"]


def test_r45_priorities_survive_a_restart(stage: Stage) -> None:
    prioritized(stage, 255)
    publish(stage, (b"a0", 0), (b"a255", 255), (b"a7", 7), (b"b255", 255), (b"b7", 7))
    stage.restart()
    publish(stage, (b"c255", 255))
    assert stage.bodies() == [b"a255", b"b255", b"c255", b"a7", b"b7", b"a0"]


def test_r45_zero_is_accepted_and_makes_a_plain_queue(stage: Stage) -> None:
    prioritized(stage, 0)
    publish(stage, (b"low", 0), (b"high", 9))
    assert stage.bodies() == [b"low", b"high"]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (256, "{max_value_exceeded,256}"),
        (-1, "{value_negative,-1}"),
        ("5", '"expected integer, got longstr"'),
        (True, '"expected integer, got bool"'),
    ],
    ids=["R45: 256", "R45: negative", "R45: a string", "R45: a boolean"],
)
def test_invalid_values_are_refused(stage: Stage, value: Value, wrong: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        stage.queue("q", {"x-max-priority": value})
    assert str(refusal.value) == f"invalid arg 'x-max-priority' for queue 'q' in vhost '/': {wrong}"


def test_r46_many_priorities_and_old_arguments_are_accepted_with_advice_per_queue(stage: Stage) -> None:
    """R47, R48."""
    advice: list[tuple[str, object]] = []
    stage.gateway.broker.events.subscribe(
        lambda event: (
            advice.append((event.subject, event.details["argument"])) if event.name == "queue.advice" else None
        )
    )
    arguments: dict[str, Value] = {"x-queue-mode": "lazy", "x-queue-version": 1, "x-max-priority": 200}
    for _ in range(2):
        stage.queue("old", arguments)
    stage.queue("new", {"x-queue-version": 2, "x-max-priority": 5, "x-queue-leader-locator": "balanced"})
    assert advice == [("old", "x-queue-mode"), ("old", "x-queue-version"), ("old", "x-max-priority")]
