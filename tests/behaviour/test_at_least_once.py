"""The at-least-once dead-letter strategy of quorum queues: no dead letter is lost while a queue rejects it (R112)."""

from collections.abc import Callable

import pytest

from gateway.kernel.messages.message import Message, Value
from gateway.kernel.queueing.pending_dead_letters import FIRST_RETRY_MS, LONGEST_RETRY_MS
from gateway.testing import MemoryBroker, header_of
from tests.behaviour.scenario import Scenario

AT_LEAST_ONCE: dict[str, Value] = {
    "x-queue-type": "quorum",
    "x-dead-letter-exchange": "dlx",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


@pytest.fixture
def at_least_once(scenario: Scenario) -> Scenario:
    scenario.queue("q", AT_LEAST_ONCE)
    return scenario


def pending(scenario: Scenario) -> int:
    return scenario.vhost.queue("q").pending_dead_letter_count


def reject_a_message(scenario: Scenario) -> None:
    scenario.publish(b"m")
    scenario.reject()


def expire_a_message(scenario: Scenario) -> None:
    scenario.publish(b"m", expiration="1000")
    scenario.advance(1000)


def exceed_the_delivery_limit(scenario: Scenario) -> None:
    scenario.policy({"delivery-limit": 0}, pattern="^q$")
    scenario.publish(b"m")
    scenario.requeue()


DEATHS = [
    pytest.param(reject_a_message, "rejected", id="rejected"),
    pytest.param(expire_a_message, "expired", id="expired"),
    pytest.param(exceed_the_delivery_limit, "delivery_limit", id="delivery limit"),
]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(("drop", "reason"), DEATHS)
def test_a_dead_letter_waits_for_its_exchange(
    at_least_once: Scenario, drop: Callable[[Scenario], None], reason: str, restarts: bool
) -> None:
    drop(at_least_once)
    assert (pending(at_least_once), at_least_once.ready()) == (1, 0)
    if restarts:
        at_least_once.restart()
    at_least_once.advance(2 * FIRST_RETRY_MS)
    assert pending(at_least_once) == 1
    at_least_once.queue("dead")
    at_least_once.exchange("dlx", "fanout", "dead")
    at_least_once.advance(FIRST_RETRY_MS)
    (letter,) = at_least_once.drain("dead")
    assert (letter.body, letter.exchange, letter.died) == (b"m", "dlx", [("q", reason, 1)])
    assert pending(at_least_once) == 0
    at_least_once.restart()
    assert (pending(at_least_once), at_least_once.ready(), at_least_once.ready("dead")) == (0, 0, 0)


def test_a_dead_letter_waits_for_a_binding(at_least_once: Scenario) -> None:
    at_least_once.exchange("dlx", "direct")
    reject_a_message(at_least_once)
    at_least_once.advance(FIRST_RETRY_MS)
    assert pending(at_least_once) == 1
    at_least_once.queue("dead")
    at_least_once.vhost.bind(at_least_once.vhost.exchange("dlx"), at_least_once.vhost.queue("dead"), "q")
    at_least_once.advance(LONGEST_RETRY_MS)
    assert (at_least_once.bodies("dead"), pending(at_least_once)) == ([b"m"], 0)


def test_a_dead_letter_waits_for_a_full_queue_and_is_not_repeated_in_others(at_least_once: Scenario) -> None:
    at_least_once.queue("full", {"x-max-length": 1, "x-overflow": "reject-publish"})
    at_least_once.queue("roomy")
    at_least_once.exchange("dlx", "fanout", "full", "roomy")
    at_least_once.publish(b"in the way", to="full")
    reject_a_message(at_least_once)
    at_least_once.advance(10 * FIRST_RETRY_MS)
    assert (at_least_once.bodies("roomy"), pending(at_least_once)) == ([b"m"], 1)
    assert at_least_once.bodies("full") == [b"in the way"]
    at_least_once.advance(LONGEST_RETRY_MS)
    assert (at_least_once.bodies("full"), at_least_once.bodies("roomy"), pending(at_least_once)) == ([b"m"], [], 0)


def test_pending_dead_letters_count_for_a_limit_that_rejects_publishes(scenario: Scenario) -> None:
    scenario.queue("q", {**AT_LEAST_ONCE, "x-max-length": 2})
    reject_a_message(scenario)
    reject_a_message(scenario)
    assert scenario.publish(b"n") == [False]
    scenario.queue("dead")
    scenario.exchange("dlx", "fanout", "dead")
    scenario.advance(2 * FIRST_RETRY_MS)
    assert scenario.publish(b"n") == [True]


def test_a_message_dropped_by_a_length_limit_is_not_kept(scenario: Scenario) -> None:
    scenario.queue("q", {**AT_LEAST_ONCE, "x-max-length": 1, "x-overflow": "drop-head"})
    scenario.publish(b"m", b"n")
    assert (pending(scenario), scenario.ready()) == (0, 1)


@pytest.mark.parametrize(
    "arguments", [{**AT_LEAST_ONCE, "x-dead-letter-strategy": "at-most-once"}, {"x-queue-type": "quorum"}]
)
def test_without_the_strategy_no_dead_letter_is_kept(scenario: Scenario, arguments: dict[str, Value]) -> None:
    scenario.queue("q", arguments)
    reject_a_message(scenario)
    assert pending(scenario) == 0


def test_pending_dead_letters_use_the_exchange_of_a_changed_policy(scenario: Scenario) -> None:
    scenario.queue("q", {"x-queue-type": "quorum"})
    definition: dict[str, Value] = {"dead-letter-exchange": "dlx", "dead-letter-strategy": "at-least-once"}
    scenario.policy(definition, pattern="^q$", apply_to="queues")
    reject_a_message(scenario)
    scenario.queue("dead")
    scenario.exchange("other", "fanout", "dead")
    scenario.policy({**definition, "dead-letter-exchange": "other"}, pattern="^q$", apply_to="queues")
    scenario.advance(2 * FIRST_RETRY_MS)
    assert (scenario.bodies("dead"), pending(scenario)) == ([b"m"], 0)


def test_pending_dead_letters_are_dropped_with_the_policy_that_required_them(scenario: Scenario) -> None:
    scenario.queue("q", {"x-queue-type": "quorum"})
    definition: dict[str, Value] = {"dead-letter-exchange": "dlx", "dead-letter-strategy": "at-least-once"}
    scenario.policy(definition, pattern="^q$", apply_to="queues")
    reject_a_message(scenario)
    scenario.policy({"delivery-limit": 3}, pattern="^q$", apply_to="queues")
    scenario.advance(2 * FIRST_RETRY_MS)
    assert pending(scenario) == 0


def test_deleting_a_queue_deletes_its_pending_dead_letters(at_least_once: Scenario) -> None:
    reject_a_message(at_least_once)
    at_least_once.vhost.delete_queue(at_least_once.vhost.queue("q"))
    at_least_once.queue("q", AT_LEAST_ONCE)
    at_least_once.restart()
    assert pending(at_least_once) == 0


def test_a_queue_with_pending_dead_letters_is_not_empty(at_least_once: Scenario) -> None:
    reject_a_message(at_least_once)
    with pytest.raises(Exception, match="not empty"):
        at_least_once.vhost.delete_queue(at_least_once.vhost.queue("q"), if_empty=True)


def test_the_interval_between_attempts_grows(at_least_once: Scenario) -> None:
    at_least_once.exchange("dlx", "direct")
    reject_a_message(at_least_once)
    route_counts = []
    for _ in range(4):
        at_least_once.advance(60_000)
        route_counts.append(at_least_once.vhost.exchange("dlx").published_in)
    assert route_counts[-1] - route_counts[-2] <= 1
    assert route_counts[0] >= 4


def test_a_dead_letter_is_not_kept_if_its_queue_is_deleted_while_it_is_sent() -> None:
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments=AT_LEAST_ONCE)
    dead_letters = queue.ensure_delayed().dead_letters
    broker.vhost.delete_queue(queue)
    dead_letters.hold(Message("dlx", "q", header_of(is_persistent=True), b"m"), ())
    broker.advance(LONGEST_RETRY_MS / 1000)
    broker.commit()
    assert len(dead_letters) == 0
    assert not broker.store.held_ids
