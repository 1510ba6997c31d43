"""A queue nobody uses is deleted after a while (R37-R39).

Rules: R60.
"""

import pytest

from gateway.kernel.messages.message import Value
from tests.behaviour.edges import Stage

LEASE: dict[str, Value] = {"x-expires": 1000}


def is_there(stage: Stage) -> bool:
    return "q" in stage.vhost.queue_by_name


@pytest.fixture
def leased(stage: Stage) -> Stage:
    stage.queue("q", LEASE)
    stage.advance(900)
    return stage


def test_r37_an_unused_queue_is_deleted_at_its_expiry_and_not_before(leased: Stage) -> None:
    leased.advance(99)
    assert is_there(leased)
    leased.advance(1)
    assert not is_there(leased)


def test_r37_publishing_does_not_renew_the_lease(leased: Stage) -> None:
    leased.publish(b"m")
    leased.advance(100)
    assert not is_there(leased)


def test_r37_a_get_renews_the_lease(leased: Stage) -> None:
    assert leased.client.get("q") is None
    leased.advance(999)
    assert is_there(leased)
    leased.advance(1)
    assert not is_there(leased)


def test_r38_a_repeated_declaration_renews_the_lease(leased: Stage) -> None:
    leased.queue("q", LEASE)
    leased.advance(999)
    assert is_there(leased)
    leased.advance(1)
    assert not is_there(leased)


@pytest.mark.parametrize("is_passive", [False, True], ids=["declared", "declared passively"])
def test_r38_declaring_a_quorum_queue_again_does_not_renew_its_lease(stage: Stage, is_passive: bool) -> None:
    stage.queue("q", {**LEASE, "x-queue-type": "quorum"})
    stage.advance(900)
    if is_passive:
        stage.vhost.queue("q").declared_again()
    else:
        stage.queue("q", {**LEASE, "x-queue-type": "quorum"})
    stage.advance(99)
    assert is_there(stage)
    stage.advance(1)
    assert not is_there(stage)


def test_r37_a_get_from_a_quorum_queue_renews_its_lease(stage: Stage) -> None:
    stage.queue("q", {**LEASE, "x-queue-type": "quorum"})
    stage.advance(900)
    assert stage.client.get("q") is None
    stage.advance(999)
    assert is_there(stage)


def test_r37_a_queue_with_a_consumer_is_kept_and_its_lease_starts_when_the_consumer_leaves(leased: Stage) -> None:
    leased.client.consume("q")
    leased.advance(5300)
    assert is_there(leased)
    leased.client.leave()
    leased.advance(999)
    assert is_there(leased)
    leased.advance(1)
    assert not is_there(leased)


def test_r38_a_restart_renews_the_lease(leased: Stage) -> None:
    leased.restart()
    leased.advance(999)
    assert is_there(leased)
    leased.advance(1)
    assert not is_there(leased)
    leased.restart()
    assert not is_there(leased)


def test_r37_the_shorter_lease_of_argument_and_policy_applies(stage: Stage) -> None:
    stage.queue("q", {"x-expires": 5000})
    stage.advance(500)
    stage.policy({"expires": 1000})
    stage.advance(499)
    assert is_there(stage)
    stage.advance(1)
    assert not is_there(stage)


def test_r37_removing_the_policy_keeps_the_queue(stage: Stage) -> None:
    stage.queue("q")
    record = stage.policy({"expires": 1000})
    stage.advance(500)
    stage.gateway.broker.remove_policy(record)
    stage.advance(5000)
    assert is_there(stage)


def test_a_deleted_queue_leaves_no_timer(stage: Stage) -> None:
    stage.vhost.delete_queue(stage.queue("q", LEASE))
    stage.queue("q")
    stage.advance(5000)
    assert is_there(stage)
