"""Dead letters of quorum queues with the strategy at-least-once: none is lost while nobody can take it (R112)."""

from collections.abc import Callable

import pytest

from gateway.kernel.messages.message import Message, Value
from gateway.kernel.queueing.pending_dead_letters import FIRST_RETRY_MS, LONGEST_RETRY_MS
from gateway.testing import MemoryBroker, header_of
from tests.behaviour.edges import Stage

SURE: dict[str, Value] = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "dlx",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


@pytest.fixture
def sure(stage: Stage) -> Stage:
    stage.queue("q", SURE)
    return stage


def held(stage: Stage) -> int:
    return stage.vhost.queue("q").letters_held


def dies_rejected(stage: Stage) -> None:
    stage.publish(b"m")
    stage.reject()


def dies_expired(stage: Stage) -> None:
    stage.publish(b"m", expiration="1000")
    stage.advance(1000)


def dies_of_tries(stage: Stage) -> None:
    stage.policy({"delivery-limit": 0}, pattern="^q$")
    stage.publish(b"m")
    stage.requeue()


DEATHS = [
    pytest.param(dies_rejected, "rejected", id="rejected"),
    pytest.param(dies_expired, "expired", id="expired"),
    pytest.param(dies_of_tries, "delivery_limit", id="delivery limit"),
]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(("die", "reason"), DEATHS)
def test_a_dead_letter_waits_for_its_exchange(
    sure: Stage, die: Callable[[Stage], None], reason: str, restarts: bool
) -> None:
    die(sure)
    assert (held(sure), sure.ready()) == (1, 0)
    if restarts:
        sure.restart()
    sure.advance(2 * FIRST_RETRY_MS)
    assert held(sure) == 1
    sure.queue("dead")
    sure.exchange("dlx", "fanout", "dead")
    sure.advance(FIRST_RETRY_MS)
    (letter,) = sure.drain("dead")
    assert (letter.body, letter.exchange, letter.died) == (b"m", "dlx", [("q", reason, 1)])
    assert held(sure) == 0
    sure.restart()
    assert (held(sure), sure.ready(), sure.ready("dead")) == (0, 0, 0)


def test_a_dead_letter_waits_for_a_binding(sure: Stage) -> None:
    sure.exchange("dlx", "direct")
    dies_rejected(sure)
    sure.advance(FIRST_RETRY_MS)
    assert held(sure) == 1
    sure.queue("dead")
    sure.vhost.bind(sure.vhost.exchange("dlx"), sure.vhost.queue("dead"), "q")
    sure.advance(LONGEST_RETRY_MS)
    assert (sure.bodies("dead"), held(sure)) == ([b"m"], 0)


def test_a_dead_letter_waits_for_a_full_queue_and_is_not_repeated_in_others(sure: Stage) -> None:
    sure.queue("full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    sure.queue("roomy")
    sure.exchange("dlx", "fanout", "full", "roomy")
    sure.publish(b"in the way", to="full")
    dies_rejected(sure)
    sure.advance(10 * FIRST_RETRY_MS)
    assert (sure.bodies("roomy"), held(sure)) == ([b"m"], 1)
    assert sure.bodies("full") == [b"in the way"]
    sure.advance(LONGEST_RETRY_MS)
    assert (sure.bodies("full"), sure.bodies("roomy"), held(sure)) == ([b"m"], [], 0)


def test_pending_dead_letters_count_for_a_limit_that_rejects_publishes(stage: Stage) -> None:
    stage.queue("q", {**SURE, "x-max-length": 2})
    dies_rejected(stage)
    dies_rejected(stage)
    assert stage.publish(b"n") == [False]
    stage.queue("dead")
    stage.exchange("dlx", "fanout", "dead")
    stage.advance(2 * FIRST_RETRY_MS)
    assert stage.publish(b"n") == [True]


def test_a_message_dropped_by_a_length_limit_is_not_kept(stage: Stage) -> None:
    stage.queue("q", {**SURE, "x-max-length": 1, "x-overflow": "drop-head"})
    stage.publish(b"m", b"n")
    assert (held(stage), stage.ready()) == (0, 1)


@pytest.mark.parametrize("arguments", [{**SURE, "x-dead-letter-strategy": "at-most-once"}, {"x-queue-type": "quorum"}])
def test_without_the_strategy_no_dead_letter_is_kept(stage: Stage, arguments: dict[str, Value]) -> None:
    stage.queue("q", arguments)
    dies_rejected(stage)
    assert held(stage) == 0


def test_pending_dead_letters_use_the_exchange_of_a_changed_policy(stage: Stage) -> None:
    stage.queue("q", {"x-queue-type": "quorum"})
    definition: dict[str, Value] = {"dead-letter-exchange": "dlx", "dead-letter-strategy": "at-least-once"}
    stage.policy(definition, pattern="^q$", apply_to="queues")
    dies_rejected(stage)
    stage.queue("dead")
    stage.exchange("other", "fanout", "dead")
    stage.policy({**definition, "dead-letter-exchange": "other"}, pattern="^q$", apply_to="queues")
    stage.advance(2 * FIRST_RETRY_MS)
    assert (stage.bodies("dead"), held(stage)) == ([b"m"], 0)


def test_pending_dead_letters_are_dropped_with_the_policy_that_required_them(stage: Stage) -> None:
    stage.queue("q", {"x-queue-type": "quorum"})
    definition: dict[str, Value] = {"dead-letter-exchange": "dlx", "dead-letter-strategy": "at-least-once"}
    stage.policy(definition, pattern="^q$", apply_to="queues")
    dies_rejected(stage)
    stage.policy({"delivery-limit": 3}, pattern="^q$", apply_to="queues")
    stage.advance(2 * FIRST_RETRY_MS)
    assert held(stage) == 0


def test_deleting_a_queue_deletes_its_pending_dead_letters(sure: Stage) -> None:
    dies_rejected(sure)
    sure.vhost.delete_queue(sure.vhost.queue("q"))
    sure.queue("q", SURE)
    sure.restart()
    assert held(sure) == 0


def test_a_queue_with_pending_dead_letters_is_not_empty(sure: Stage) -> None:
    dies_rejected(sure)
    with pytest.raises(Exception, match="not empty"):
        sure.vhost.delete_queue(sure.vhost.queue("q"), if_empty=True)


def test_the_interval_between_attempts_grows(sure: Stage) -> None:
    sure.exchange("dlx", "direct")
    dies_rejected(sure)
    route_counts = []
    for _ in range(4):
        sure.advance(60_000)
        route_counts.append(sure.vhost.exchange("dlx").published_in)
    assert route_counts[-1] - route_counts[-2] <= 1
    assert route_counts[0] >= 4


def test_a_dead_letter_is_not_kept_if_its_queue_is_deleted_while_it_is_sent() -> None:
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments=SURE)
    letters = queue.holding_back().letters
    broker.vhost.delete_queue(queue)
    letters.hold(Message("dlx", "q", header_of(is_persistent=True), b"m"), ())
    broker.advance(LONGEST_RETRY_MS / 1000)
    broker.commit()
    assert len(letters) == 0
    assert not broker.store.held_ids
