"""Unused queues are deleted after a period (R37-R39).

Rules: R60.
"""

import pytest

from gateway.kernel.messages.message import Value
from tests.behaviour.scenario import Scenario

LEASE: dict[str, Value] = {"x-expires": 1000}


def exists(scenario: Scenario) -> bool:
    return "q" in scenario.vhost.queue_by_name


@pytest.fixture
def leased(scenario: Scenario) -> Scenario:
    scenario.queue("q", LEASE)
    scenario.advance(900)
    return scenario


def test_r37_an_unused_queue_is_deleted_at_its_expiry_and_not_before(leased: Scenario) -> None:
    leased.advance(99)
    assert exists(leased)
    leased.advance(1)
    assert not exists(leased)


def test_r37_publishing_does_not_renew_the_lease(leased: Scenario) -> None:
    leased.publish(b"m")
    leased.advance(100)
    assert not exists(leased)


def test_r37_a_get_renews_the_lease(leased: Scenario) -> None:
    assert leased.client.get("q") is None
    leased.advance(999)
    assert exists(leased)
    leased.advance(1)
    assert not exists(leased)


def test_r38_a_repeated_declaration_renews_the_lease(leased: Scenario) -> None:
    leased.queue("q", LEASE)
    leased.advance(999)
    assert exists(leased)
    leased.advance(1)
    assert not exists(leased)


@pytest.mark.parametrize("is_passive", [False, True], ids=["declared", "declared passively"])
def test_r38_declaring_a_quorum_queue_again_does_not_renew_its_lease(scenario: Scenario, is_passive: bool) -> None:
    scenario.queue("q", {**LEASE, "x-queue-type": "quorum"})
    scenario.advance(900)
    if is_passive:
        scenario.vhost.queue("q").redeclared()
    else:
        scenario.queue("q", {**LEASE, "x-queue-type": "quorum"})
    scenario.advance(99)
    assert exists(scenario)
    scenario.advance(1)
    assert not exists(scenario)


def test_r37_a_get_from_a_quorum_queue_renews_its_lease(scenario: Scenario) -> None:
    scenario.queue("q", {**LEASE, "x-queue-type": "quorum"})
    scenario.advance(900)
    assert scenario.client.get("q") is None
    scenario.advance(999)
    assert exists(scenario)


def test_r37_a_queue_with_a_consumer_is_kept_and_its_lease_starts_when_the_consumer_leaves(leased: Scenario) -> None:
    leased.client.consume("q")
    leased.advance(5300)
    assert exists(leased)
    leased.client.leave()
    leased.advance(999)
    assert exists(leased)
    leased.advance(1)
    assert not exists(leased)


def test_r38_a_restart_renews_the_lease(leased: Scenario) -> None:
    leased.restart()
    leased.advance(999)
    assert exists(leased)
    leased.advance(1)
    assert not exists(leased)
    leased.restart()
    assert not exists(leased)


def test_r37_the_shorter_lease_of_argument_and_policy_applies(scenario: Scenario) -> None:
    scenario.queue("q", {"x-expires": 5000})
    scenario.advance(500)
    scenario.policy({"expires": 1000})
    scenario.advance(499)
    assert exists(scenario)
    scenario.advance(1)
    assert not exists(scenario)


def test_r37_removing_the_policy_keeps_the_queue(scenario: Scenario) -> None:
    scenario.queue("q")
    record = scenario.policy({"expires": 1000})
    scenario.advance(500)
    scenario.gateway.broker.remove_policy(record)
    scenario.advance(5000)
    assert exists(scenario)


def test_a_deleted_queue_leaves_no_timer(scenario: Scenario) -> None:
    scenario.vhost.delete_queue(scenario.queue("q", LEASE))
    scenario.queue("q")
    scenario.advance(5000)
    assert exists(scenario)
