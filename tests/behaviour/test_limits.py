"""Limits by number and by bytes, and what happens at them (R42, R43, R61-R75)."""

import pytest

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import Stage

LIMITS = [
    #            arguments                                    left
    pytest.param({"x-max-length": 2}, [b"ccc", b"dddd"], id="R61: by number"),
    pytest.param({"x-max-length-bytes": 7}, [b"ccc", b"dddd"], id="R61: by bytes"),
    pytest.param({"x-max-length-bytes": 6}, [b"dddd"], id="R61: by bytes, whole messages go"),
    pytest.param({"x-max-length": 3, "x-max-length-bytes": 4}, [b"dddd"], id="R42: bytes are hit first"),
    pytest.param({"x-max-length": 1, "x-max-length-bytes": 99}, [b"dddd"], id="R42: number is hit first"),
    pytest.param({"x-max-length": 0}, [], id="R42: 0 is allowed"),
    pytest.param({"x-max-length-bytes": 3}, [], id="R61: a message that is too large alone goes too"),
]


@pytest.mark.parametrize(("arguments", "left"), LIMITS)
def test_r65_the_oldest_messages_are_dropped(stage: Stage, arguments: dict[str, Value], left: list[bytes]) -> None:
    stage.queue("q", arguments)
    assert stage.publish(b"a", b"bb", b"ccc", b"dddd", delivery_mode=2) == [True] * 4
    assert stage.bodies() == left


def test_r61_only_bodies_count(stage: Stage) -> None:
    stage.queue("q", {"x-max-length-bytes": 4})
    stage.publish(b"aa", b"bb", headers={"long": "x" * 100}, message_id="m")
    assert stage.ready() == 2


def test_r62_the_smaller_of_argument_and_policies_applies(stage: Stage) -> None:
    stage.policy({"max-length": 3, "max-length-bytes": 100})
    stage.policy({"max-length": 9, "max-length-bytes": 2}, is_operator=True)
    stage.queue("q", {"x-max-length": 5, "x-max-length-bytes": 50})
    stage.publish(b"", b"", b"", b"")
    assert stage.ready() == 3
    stage.publish(b"x", b"y", b"z")
    assert stage.bodies() == [b"y", b"z"]


def test_r64_unacknowledged_messages_do_not_count(stage: Stage) -> None:
    stage.queue("q", {"x-max-length": 2})
    stage.publish(b"a", b"b")
    held = [stage.get(), stage.get()]
    stage.publish(b"c", b"d")
    assert stage.ready() == 2
    for received in held:
        stage.client.settle(received, DeliveryOutcome.REQUEUED)
    assert stage.bodies() == [b"c", b"d"], "what came back is the oldest, so it goes"


def test_r66_a_publisher_gets_a_nack_for_a_rejected_message(stage: Stage) -> None:
    stage.queue("q", {"x-max-length": 2, "x-overflow": "reject-publish"})
    assert stage.publish(b"a", b"b", b"c") == [True, True, False]
    assert stage.bodies() == [b"a", b"b"]
    assert stage.publish(b"d") == [True]


def test_r66_publishes_are_rejected_by_bytes_too(stage: Stage) -> None:
    stage.queue("q", {"x-max-length-bytes": 4, "x-overflow": "reject-publish"})
    assert stage.publish(b"aaa", b"bb", b"c") == [True, False, True]


def test_r64_a_rejecting_queue_accepts_requeued_messages(stage: Stage) -> None:
    stage.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    stage.publish(b"a")
    held = stage.get()
    stage.publish(b"b")
    stage.client.settle(held, DeliveryOutcome.REQUEUED)
    assert stage.bodies() == [b"a", b"b"]


def test_r67_other_queues_keep_a_message_that_one_queue_rejects(stage: Stage) -> None:
    stage.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    stage.queue("roomy")
    stage.exchange("x", "fanout", "full", "roomy")
    assert stage.publish(b"m", exchange="x") == [False]
    assert (stage.ready("full"), stage.bodies("roomy")) == (0, [b"m"])


def test_r68_a_rejected_publish_may_be_dead_lettered(stage: Stage) -> None:
    stage.queue("dead")
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    stage.queue("q", {**arguments, "x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    assert stage.publish(b"a", b"b") == [True, False]
    assert [(letter.body, letter.died) for letter in stage.drain("dead")] == [(b"b", [("q", "maxlen", 1)])]
    assert stage.bodies() == [b"a"]


def test_r66_reject_publish_does_not_dead_letter(stage: Stage) -> None:
    stage.queue("dead")
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    stage.queue("q", {**arguments, "x-max-length": 1, "x-overflow": "reject-publish"})
    assert stage.publish(b"a", b"b") == [True, False]
    assert stage.ready("dead") == 0


def test_r71_a_policy_limits_a_queue_to_a_megabyte(stage: Stage) -> None:
    stage.queue("one-meg")
    stage.policy({"max-length-bytes": 1048576}, name="my-pol", pattern="^one-meg$", apply_to="queues")
    assert all(stage.publish(*[bytes([number]) * 262_144 for number in range(5)], to="one-meg"))
    assert [body[0] for body in stage.bodies("one-meg")] == [1, 2, 3, 4]


def test_r72_a_policy_makes_a_queue_reject_the_third_message(stage: Stage) -> None:
    stage.queue("two-messages")
    stage.policy(
        {"max-length": 2, "overflow": "reject-publish"}, name="my-pol", pattern="^two-messages$", apply_to="queues"
    )
    assert stage.publish(b"1", b"2", b"3", to="two-messages") == [True, True, False]


def test_r101_the_overflow_argument_takes_precedence(stage: Stage) -> None:
    stage.policy({"overflow": "reject-publish"})
    stage.queue("q", {"x-max-length": 1, "x-overflow": "drop-head"})
    assert stage.publish(b"a", b"b") == [True, True]
    assert stage.bodies() == [b"b"]


def test_a_limit_set_later_drops_the_excess(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    stage.publish(*[b"%d" % number for number in range(5)])
    stage.policy({"max-length": 2}, pattern="^q$")
    assert stage.bodies() == [b"3", b"4"]
    assert [letter.died for letter in stage.drain("dead")] == [[("q", "maxlen", 1)]] * 3


def test_limits_apply_after_a_restart(stage: Stage) -> None:
    stage.queue("q", {"x-max-length-bytes": 4})
    stage.publish(b"aa", b"bb", delivery_mode=2)
    stage.restart()
    stage.publish(b"c")
    assert stage.bodies() == [b"bb", b"c"]
