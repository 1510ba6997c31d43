"""Policies set the features beyond RabbitMQ, also for waiting messages.

Operator policies can set limits only, so none of these features.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import Scenario

EXTRAS: dict[str, Value] = {
    "cache-size": 5,
    "cache-ttl": 1000,
    "delayed-delivery": True,
    "expire-mode": "anywhere",
    "message-deduplication": True,
    "retry-delays": [10, 20],
}


def key(name: str) -> dict[str, Value]:
    return {"x-deduplication-header": name}


@pytest.mark.parametrize("name", sorted(EXTRAS))
def test_a_policy_may_set_it_and_an_operator_policy_may_not(scenario: Scenario, name: str) -> None:
    scenario.queue("q")
    scenario.policy({name: EXTRAS[name]})
    assert scenario.vhost.queue("q").settings[name].source == "policy p"
    with pytest.raises(PreconditionFailed, match="are not recognised policy settings"):
        scenario.policy({name: EXTRAS[name]}, is_operator=True)


@pytest.mark.parametrize("name", ["x-expire-mode", "retry-delay", "x-delayed-delivery"])
def test_unknown_names_are_refused(scenario: Scenario, name: str) -> None:
    with pytest.raises(PreconditionFailed, match="are not recognised policy settings"):
        scenario.policy({name: 1})


def test_the_argument_takes_precedence(scenario: Scenario) -> None:
    scenario.queue("q", {"x-retry-delays": [50]})
    scenario.policy({"retry-delays": [1000]})
    scenario.publish(b"m")
    scenario.reject()
    scenario.advance(50)
    assert scenario.bodies() == [b"m"]


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 2}], ids=["plain", "priorities"])
def test_a_policy_makes_waiting_messages_expire_anywhere(
    scenario: Scenario, arguments: dict[str, Value], delivery_mode: int
) -> None:
    queue = scenario.queue("q", arguments)
    for number in range(3000):
        expiration = "100" if number % 1000 == 999 else "100000"
        scenario.publish(b"%d" % number, expiration=expiration, delivery_mode=delivery_mode)
    assert len(list(queue.ready.paged())) > 0
    scenario.policy({"expire-mode": "anywhere"})
    scenario.advance(99)
    assert scenario.ready() == 3000
    scenario.advance(1)
    assert scenario.ready() == 2997
    assert {b"999", b"1999", b"2999"}.isdisjoint(scenario.bodies())


def test_without_the_policy_messages_expire_at_the_head_again(scenario: Scenario) -> None:
    scenario.queue("q")
    record = scenario.policy({"expire-mode": "anywhere"})
    scenario.publish(b"lasting")
    scenario.publish(b"passing", expiration="100")
    scenario.gateway.broker.remove_policy(record)
    scenario.advance(100)
    assert scenario.ready() == 2
    assert scenario.bodies() == [b"lasting"]


def test_retries_start_with_the_policy_and_delayed_retries_end_on_time_without_it(scenario: Scenario) -> None:
    scenario.queue("q")
    record = scenario.policy({"retry-delays": [100]})
    scenario.publish(b"m", b"n", delivery_mode=2)
    scenario.reject()
    scenario.gateway.broker.remove_policy(record)
    scenario.reject()
    scenario.advance(99)
    assert scenario.ready() == 0
    scenario.restart()
    scenario.advance(1)
    assert scenario.bodies() == [b"m"]


def test_delays_start_with_the_policy_and_end_on_time_without_it(scenario: Scenario) -> None:
    scenario.queue("q")
    later: dict[str, Value] = {"x-delay": 100}
    scenario.publish(b"before", headers=later)
    record = scenario.policy({"delayed-delivery": True})
    scenario.publish(b"meanwhile", headers=later)
    scenario.gateway.broker.remove_policy(record)
    scenario.publish(b"after", headers=later)
    assert scenario.bodies() == [b"before", b"after"]
    scenario.advance(100)
    assert scenario.bodies() == [b"meanwhile"]


def test_deleting_a_queue_deletes_its_delayed_messages(scenario: Scenario) -> None:
    scenario.queue("q")
    record = scenario.policy({"delayed-delivery": True})
    scenario.publish(b"m", delivery_mode=2, headers={"x-delay": 100})
    scenario.gateway.broker.remove_policy(record)
    scenario.vhost.delete_queue(scenario.vhost.queue("q"))
    scenario.advance(1000)
    assert scenario.gateway.store.held_ids == frozenset()


def test_the_deduplication_cache_follows_the_policy_and_keeps_its_keys(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"before", headers=key("a"))
    scenario.policy({"message-deduplication": True})
    scenario.publish(b"first", headers=key("a"))
    scenario.publish(b"second", headers=key("b"))
    scenario.policy({"message-deduplication": True, "cache-size": 1})
    scenario.publish(b"known", headers=key("b"))
    scenario.publish(b"forgotten", headers=key("a"))
    assert scenario.bodies() == [b"before", b"first", b"second", b"forgotten"]
    scenario.policy({"message-deduplication": False})
    scenario.publish(b"again", headers=key("a"))
    assert scenario.bodies() == [b"again"]


def test_a_policy_sets_the_time_to_live_of_keys(scenario: Scenario) -> None:
    scenario.queue("q", {"x-message-deduplication": True})
    scenario.policy({"cache-ttl": 100})
    scenario.publish(b"first", headers=key("a"))
    scenario.advance(99)
    scenario.publish(b"repeated", headers=key("a"))
    scenario.advance(1)
    scenario.publish(b"new", headers=key("a"))
    assert scenario.bodies() == [b"first", b"new"]


def test_a_change_of_policy_keeps_consumers_and_their_unacknowledged_messages(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.client.consume("q", prefetch=1)
    scenario.publish(b"m", b"n")
    (held,) = scenario.client.received()
    scenario.policy(EXTRAS)
    scenario.client.settle(held, DeliveryOutcome.REJECTED)
    (other,) = scenario.client.received()
    scenario.client.settle(other, DeliveryOutcome.ACCEPTED)
    scenario.advance(10)
    (again,) = scenario.client.received()
    assert (held.body, other.body, again.body) == (b"m", b"n", b"m")
