"""Length limits by number and by bytes, and their overflow behaviour (R42, R43, R61-R75)."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import Scenario

LIMITS = [
    #            arguments                                    left
    pytest.param({"x-max-length": 2}, [b"ccc", b"dddd"], id="R61: by number"),
    pytest.param({"x-max-length-bytes": 7}, [b"ccc", b"dddd"], id="R61: by bytes"),
    pytest.param({"x-max-length-bytes": 6}, [b"dddd"], id="R61: by bytes, whole messages are dropped"),
    pytest.param({"x-max-length": 3, "x-max-length-bytes": 4}, [b"dddd"], id="R42: bytes are hit first"),
    pytest.param({"x-max-length": 1, "x-max-length-bytes": 99}, [b"dddd"], id="R42: number is hit first"),
    pytest.param({"x-max-length": 0}, [], id="R42: 0 is allowed"),
    pytest.param({"x-max-length-bytes": 3}, [], id="R61: a single message that is too large is dropped too"),
]


@pytest.mark.parametrize(("arguments", "remaining"), LIMITS)
def test_r65_the_oldest_messages_are_dropped(
    scenario: Scenario, arguments: dict[str, Value], remaining: list[bytes]
) -> None:
    scenario.queue("q", arguments)
    assert scenario.publish(b"a", b"bb", b"ccc", b"dddd", delivery_mode=2) == [True] * 4
    assert scenario.bodies() == remaining


def test_r61_only_bodies_count(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length-bytes": 4})
    scenario.publish(b"aa", b"bb", headers={"long": "x" * 100}, message_id="m")
    assert scenario.ready() == 2


def test_r62_the_smaller_of_argument_and_policies_applies(scenario: Scenario) -> None:
    scenario.policy({"max-length": 3, "max-length-bytes": 100})
    scenario.policy({"max-length": 9, "max-length-bytes": 2}, is_operator=True)
    scenario.queue("q", {"x-max-length": 5, "x-max-length-bytes": 50})
    scenario.publish(b"", b"", b"", b"")
    assert scenario.ready() == 3
    scenario.publish(b"x", b"y", b"z")
    assert scenario.bodies() == [b"y", b"z"]


def test_r64_unacknowledged_messages_do_not_count(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length": 2})
    scenario.publish(b"a", b"b")
    held = [scenario.get(), scenario.get()]
    scenario.publish(b"c", b"d")
    assert scenario.ready() == 2
    for received in held:
        scenario.client.settle(received, DeliveryOutcome.REQUEUED)
    assert scenario.bodies() == [b"c", b"d"], "requeued messages are the oldest, so they are dropped"


def test_r66_a_publisher_gets_a_nack_for_a_rejected_message(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length": 2, "x-overflow": "reject-publish"})
    assert scenario.publish(b"a", b"b", b"c") == [True, True, False]
    assert scenario.bodies() == [b"a", b"b"]
    assert scenario.publish(b"d") == [True]


def test_r66_publishes_are_rejected_by_bytes_too(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length-bytes": 4, "x-overflow": "reject-publish"})
    assert scenario.publish(b"aaa", b"bb", b"c") == [True, False, True]


def test_r64_a_rejecting_queue_accepts_requeued_messages(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    scenario.publish(b"a")
    held = scenario.get()
    scenario.publish(b"b")
    scenario.client.settle(held, DeliveryOutcome.REQUEUED)
    assert scenario.bodies() == [b"a", b"b"]


def test_r67_other_queues_keep_a_message_that_one_queue_rejects(scenario: Scenario) -> None:
    scenario.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    scenario.queue("roomy")
    scenario.exchange("x", "fanout", "full", "roomy")
    assert scenario.publish(b"m", exchange="x") == [False]
    assert (scenario.ready("full"), scenario.bodies("roomy")) == (0, [b"m"])


def test_r68_a_rejected_publish_may_be_dead_lettered(scenario: Scenario) -> None:
    scenario.queue("dead")
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    scenario.queue("q", {**arguments, "x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    assert scenario.publish(b"a", b"b") == [True, False]
    assert [(letter.body, letter.died) for letter in scenario.drain("dead")] == [(b"b", [("q", "maxlen", 1)])]
    assert scenario.bodies() == [b"a"]


def test_r66_reject_publish_does_not_dead_letter(scenario: Scenario) -> None:
    scenario.queue("dead")
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    scenario.queue("q", {**arguments, "x-max-length": 1, "x-overflow": "reject-publish"})
    assert scenario.publish(b"a", b"b") == [True, False]
    assert scenario.ready("dead") == 0


def test_r71_a_policy_limits_a_queue_to_a_megabyte(scenario: Scenario) -> None:
    scenario.queue("one-meg")
    scenario.policy({"max-length-bytes": 1048576}, name="my-pol", pattern="^one-meg$", apply_to="queues")
    assert all(scenario.publish(*[bytes([number]) * 262_144 for number in range(5)], to="one-meg"))
    assert [body[0] for body in scenario.bodies("one-meg")] == [1, 2, 3, 4]


def test_r72_a_policy_makes_a_queue_reject_the_third_message(scenario: Scenario) -> None:
    scenario.queue("two-messages")
    scenario.policy(
        {"max-length": 2, "overflow": "reject-publish"}, name="my-pol", pattern="^two-messages$", apply_to="queues"
    )
    assert scenario.publish(b"1", b"2", b"3", to="two-messages") == [True, True, False]


def test_r101_the_overflow_argument_takes_precedence(scenario: Scenario) -> None:
    scenario.policy({"overflow": "reject-publish"})
    scenario.queue("q", {"x-max-length": 1, "x-overflow": "drop-head"})
    assert scenario.publish(b"a", b"b") == [True, True]
    assert scenario.bodies() == [b"b"]


def test_a_limit_set_later_drops_the_excess(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    scenario.publish(*[b"%d" % number for number in range(5)])
    scenario.policy({"max-length": 2}, pattern="^q$")
    assert scenario.bodies() == [b"3", b"4"]
    assert [letter.died for letter in scenario.drain("dead")] == [[("q", "maxlen", 1)]] * 3


def test_limits_apply_after_a_restart(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length-bytes": 4})
    scenario.publish(b"aa", b"bb", delivery_mode=2)
    scenario.restart()
    scenario.publish(b"c")
    assert scenario.bodies() == [b"bb", b"c"]
