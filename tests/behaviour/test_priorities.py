"""Priority queues (R45, R69, R76-R81).

Rules: R46.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import Scenario


def declare_with_priorities(scenario: Scenario, highest: int = 10, **arguments: Value) -> None:
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    scenario.queue("q", {"x-max-priority": highest, **others})


def publish(scenario: Scenario, *messages: tuple[bytes, int | None], delivery_mode: int = 2) -> None:
    for body, priority in messages:
        scenario.publish(body, priority=priority, delivery_mode=delivery_mode)


def test_r76_without_the_argument_priority_is_ignored(scenario: Scenario) -> None:
    scenario.queue("q")
    publish(scenario, (b"a", 0), (b"b", 9), (b"c", 4))
    assert scenario.bodies() == [b"a", b"b", b"c"]


def test_r77_higher_priorities_come_first_none_is_zero_and_excess_is_the_maximum(scenario: Scenario) -> None:
    declare_with_priorities(scenario, 5)
    publish(scenario, (b"none", None), (b"zero", 0), (b"two", 2), (b"most", 5), (b"more", 200), (b"too", 5))
    assert scenario.bodies() == [b"most", b"more", b"too", b"two", b"none", b"zero"]


def test_r78_a_policy_cannot_enable_priorities(scenario: Scenario) -> None:
    scenario.queue("q")
    with pytest.raises(PreconditionFailed, match="not recognised policy settings"):
        scenario.policy({"max-priority": 10})
    publish(scenario, (b"low", 1), (b"high", 9))
    assert scenario.bodies() == [b"low", b"high"]


def test_r79_prefetched_messages_are_not_reordered(scenario: Scenario) -> None:
    declare_with_priorities(scenario)
    publish(scenario, (b"a", 1), (b"b", 1))
    scenario.client.consume("q", prefetch=1)
    publish(scenario, (b"urgent", 9))
    (first,) = scenario.client.received()
    scenario.client.settle(first, DeliveryOutcome.ACCEPTED)
    (second,) = scenario.client.received()
    assert (first.body, second.body) == (b"a", b"urgent")


def test_r80_expired_messages_wait_behind_live_ones_of_higher_priority_and_count(scenario: Scenario) -> None:
    declare_with_priorities(scenario)
    scenario.publish(b"stale", priority=1, expiration="10")
    scenario.publish(b"live", priority=5)
    scenario.advance(100)
    assert scenario.ready() == 2
    assert scenario.bodies() == [b"live"]


def test_r69_a_limit_drops_from_the_head_regardless_of_priority(scenario: Scenario) -> None:
    declare_with_priorities(scenario, x_max_length=2)
    publish(scenario, (b"high", 9), (b"low", 1), (b"middle", 5))
    assert scenario.bodies() == [b"middle", b"low"]


def test_r81_within_a_priority_the_order_is_that_of_arrival(scenario: Scenario) -> None:
    declare_with_priorities(scenario, 2)
    publish(scenario, *((b"%d" % number, number % 3) for number in range(9)))
    assert scenario.bodies() == [b"2", b"5", b"8", b"1", b"4", b"7", b"0", b"3", b"6"]


def test_r81_a_requeued_message_returns_to_its_position(scenario: Scenario) -> None:
    declare_with_priorities(scenario)
    publish(scenario, (b"a1", 1), (b"a5", 5), (b"b5", 5), (b"b1", 1))
    taken = [scenario.get() for _ in range(3)]
    publish(scenario, (b"c5", 5))
    for received in reversed(taken):
        scenario.client.settle(received, DeliveryOutcome.REQUEUED)
    assert scenario.bodies() == [b"a5", b"b5", b"c5", b"a1", b"b1"]


def test_r45_priorities_survive_a_restart(scenario: Scenario) -> None:
    declare_with_priorities(scenario, 255)
    publish(scenario, (b"a0", 0), (b"a255", 255), (b"a7", 7), (b"b255", 255), (b"b7", 7))
    scenario.restart()
    publish(scenario, (b"c255", 255))
    assert scenario.bodies() == [b"a255", b"b255", b"c255", b"a7", b"b7", b"a0"]


def test_r45_zero_is_accepted_and_makes_a_plain_queue(scenario: Scenario) -> None:
    declare_with_priorities(scenario, 0)
    publish(scenario, (b"low", 0), (b"high", 9))
    assert scenario.bodies() == [b"low", b"high"]


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
def test_invalid_values_are_refused(scenario: Scenario, value: Value, wrong: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        scenario.queue("q", {"x-max-priority": value})
    assert str(refusal.value) == f"invalid arg 'x-max-priority' for queue 'q' in vhost '/': {wrong}"


def test_r46_many_priorities_and_old_arguments_are_accepted_with_advice_per_queue(scenario: Scenario) -> None:
    """R47, R48."""
    advice: list[tuple[str, object]] = []
    scenario.gateway.broker.events.subscribe(
        lambda event: (
            advice.append((event.subject, event.details["argument"])) if event.name == "queue.advice" else None
        )
    )
    arguments: dict[str, Value] = {"x-queue-mode": "lazy", "x-queue-version": 1, "x-max-priority": 200}
    for _ in range(2):
        scenario.queue("old", arguments)
    scenario.queue("new", {"x-queue-version": 2, "x-max-priority": 5, "x-queue-leader-locator": "balanced"})
    assert advice == [("old", "x-queue-mode"), ("old", "x-queue-version"), ("old", "x-max-priority")]
