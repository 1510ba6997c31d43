"""What queues do beyond RabbitMQ can be said by policies: for what waits already, and while the policy is there.

Operator policies set limits alone, so none of it is theirs.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import Stage

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
def test_a_policy_may_set_it_and_an_operator_policy_may_not(stage: Stage, name: str) -> None:
    stage.queue("q")
    stage.policy({name: EXTRAS[name]})
    assert stage.vhost.queue("q").settings[name].source == "policy p"
    with pytest.raises(PreconditionFailed, match="are not recognised policy settings"):
        stage.policy({name: EXTRAS[name]}, is_operator=True)


@pytest.mark.parametrize("name", ["x-expire-mode", "retry-delay", "x-delayed-delivery"])
def test_unknown_names_are_refused(stage: Stage, name: str) -> None:
    with pytest.raises(PreconditionFailed, match="are not recognised policy settings"):
        stage.policy({name: 1})


def test_the_argument_takes_precedence(stage: Stage) -> None:
    stage.queue("q", {"x-retry-delays": [50]})
    stage.policy({"retry-delays": [1000]})
    stage.publish(b"m")
    stage.reject()
    stage.advance(50)
    assert stage.bodies() == [b"m"]


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 2}], ids=["plain", "priorities"])
def test_a_policy_makes_waiting_messages_expire_anywhere(
    stage: Stage, arguments: dict[str, Value], delivery_mode: int
) -> None:
    queue = stage.queue("q", arguments)
    for number in range(3000):
        expiration = "100" if number % 1000 == 999 else "100000"
        stage.publish(b"%d" % number, expiration=expiration, delivery_mode=delivery_mode)
    assert len(list(queue.ready.paged())) > 0
    stage.policy({"expire-mode": "anywhere"})
    stage.advance(99)
    assert stage.ready() == 3000
    stage.advance(1)
    assert stage.ready() == 2997
    assert {b"999", b"1999", b"2999"}.isdisjoint(stage.bodies())


def test_without_the_policy_messages_expire_at_the_head_again(stage: Stage) -> None:
    stage.queue("q")
    record = stage.policy({"expire-mode": "anywhere"})
    stage.publish(b"lasting")
    stage.publish(b"passing", expiration="100")
    stage.gateway.broker.remove_policy(record)
    stage.advance(100)
    assert stage.ready() == 2
    assert stage.bodies() == [b"lasting"]


def test_retries_start_with_the_policy_and_delayed_retries_end_on_time_without_it(stage: Stage) -> None:
    stage.queue("q")
    record = stage.policy({"retry-delays": [100]})
    stage.publish(b"m", b"n", delivery_mode=2)
    stage.reject()
    stage.gateway.broker.remove_policy(record)
    stage.reject()
    stage.advance(99)
    assert stage.ready() == 0
    stage.restart()
    stage.advance(1)
    assert stage.bodies() == [b"m"]


def test_delays_start_with_the_policy_and_end_on_time_without_it(stage: Stage) -> None:
    stage.queue("q")
    later: dict[str, Value] = {"x-delay": 100}
    stage.publish(b"before", headers=later)
    record = stage.policy({"delayed-delivery": True})
    stage.publish(b"meanwhile", headers=later)
    stage.gateway.broker.remove_policy(record)
    stage.publish(b"after", headers=later)
    assert stage.bodies() == [b"before", b"after"]
    stage.advance(100)
    assert stage.bodies() == [b"meanwhile"]


def test_deleting_a_queue_deletes_its_delayed_messages(stage: Stage) -> None:
    stage.queue("q")
    record = stage.policy({"delayed-delivery": True})
    stage.publish(b"m", delivery_mode=2, headers={"x-delay": 100})
    stage.gateway.broker.remove_policy(record)
    stage.vhost.delete_queue(stage.vhost.queue("q"))
    stage.advance(1000)
    assert stage.gateway.store.held_ids == frozenset()


def test_the_deduplication_cache_follows_the_policy_and_keeps_its_keys(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"before", headers=key("a"))
    stage.policy({"message-deduplication": True})
    stage.publish(b"first", headers=key("a"))
    stage.publish(b"second", headers=key("b"))
    stage.policy({"message-deduplication": True, "cache-size": 1})
    stage.publish(b"known", headers=key("b"))
    stage.publish(b"forgotten", headers=key("a"))
    assert stage.bodies() == [b"before", b"first", b"second", b"forgotten"]
    stage.policy({"message-deduplication": False})
    stage.publish(b"again", headers=key("a"))
    assert stage.bodies() == [b"again"]


def test_a_policy_sets_the_time_to_live_of_keys(stage: Stage) -> None:
    stage.queue("q", {"x-message-deduplication": True})
    stage.policy({"cache-ttl": 100})
    stage.publish(b"first", headers=key("a"))
    stage.advance(99)
    stage.publish(b"repeated", headers=key("a"))
    stage.advance(1)
    stage.publish(b"new", headers=key("a"))
    assert stage.bodies() == [b"first", b"new"]


def test_a_change_of_policy_keeps_consumers_and_their_unacknowledged_messages(stage: Stage) -> None:
    stage.queue("q")
    stage.client.consume("q", prefetch=1)
    stage.publish(b"m", b"n")
    (held,) = stage.client.received()
    stage.policy(EXTRAS)
    stage.client.settle(held, DeliveryOutcome.REJECTED)
    (other,) = stage.client.received()
    stage.client.settle(other, DeliveryOutcome.ACCEPTED)
    stage.advance(10)
    (again,) = stage.client.received()
    assert (held.body, other.body, again.body) == (b"m", b"n", b"m")
