"""Policies apply at once to existing and later queues and exchanges (R24, R139, R140)."""

import pytest

from gateway.kernel.messages.message import Value
from tests.behaviour.scenario import Scenario


def limit(scenario: Scenario, queue: str = "q") -> tuple[Value, str] | None:
    setting = scenario.vhost.queue(queue).settings.get("max-length")
    return None if setting is None else (setting.value, setting.source)


def test_r139_a_policy_applies_to_existing_and_new_queues(scenario: Scenario) -> None:
    scenario.queue("old")
    scenario.policy({"max-length": 1})
    scenario.queue("new")
    assert limit(scenario, "old") == limit(scenario, "new") == (1, "policy p")


def test_r139_a_changed_or_removed_policy_takes_effect_everywhere(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.policy({"max-length": 1})
    record = scenario.policy({"max-length": 2})
    assert limit(scenario) == (2, "policy p")
    scenario.gateway.broker.remove_policy(record)
    assert limit(scenario) is None


def test_r139_only_the_policy_with_the_highest_priority_applies(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.policy({"max-length": 1}, name="low", priority=1)
    high = scenario.policy({"message-ttl": 5000}, name="high", priority=2)
    assert limit(scenario) is None
    scenario.gateway.broker.remove_policy(high)
    assert limit(scenario) == (1, "policy low")


@pytest.mark.parametrize(
    ("apply_to", "applied_to"),
    [
        ("all", {"classic", "quorum", "exchange"}),
        ("queues", {"classic", "quorum"}),
        ("classic_queues", {"classic"}),
        ("quorum_queues", {"quorum"}),
        ("streams", set()),
        ("exchanges", {"exchange"}),
    ],
)
def test_r139_a_policy_applies_to_the_selected_types(scenario: Scenario, apply_to: str, applied_to: set[str]) -> None:
    scenario.queue("classic")
    scenario.queue("quorum", {"x-queue-type": "quorum"})
    scenario.exchange("exchange")
    scenario.policy({"message-ttl": 1000}, apply_to=apply_to)
    settings = {queue.name: queue.settings for queue in scenario.vhost.queue_by_name.values()}
    settings["exchange"] = scenario.vhost.exchange("exchange").settings
    assert {name for name in settings if settings[name].policy is not None} == applied_to


def test_r139_the_pattern_matches_anywhere_unless_anchored(scenario: Scenario) -> None:
    for name in ("orders", "reorders", "bills"):
        scenario.queue(name)
    scenario.policy({"max-length": 1}, pattern="orders")
    assert [limit(scenario, name) is not None for name in ("orders", "reorders", "bills")] == [True, True, False]
    scenario.policy({"max-length": 1}, pattern="^orders$")
    assert [limit(scenario, name) is not None for name in ("orders", "reorders", "bills")] == [True, False, False]


def test_r140_operator_policies_take_precedence(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.policy({"max-length": 5, "overflow": "reject-publish"})
    scenario.policy({"max-length": 3, "message-ttl": 9000}, name="o", is_operator=True)
    settings = scenario.vhost.queue("q").settings
    assert settings.policy_definition == {"max-length": 3, "overflow": "reject-publish", "message-ttl": 9000}
    assert limit(scenario) == (3, "operator policy o")


def test_r153_a_change_of_policy_loses_no_message_and_no_consumer(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.publish(b"a", b"b")
    held = scenario.get()
    scenario.policy({"queue-mode": "lazy", "max-length": 10})
    scenario.client.consume("q")
    assert [received.body for received in scenario.client.received()] == [b"b"]
    assert held.body == b"a"


def test_policies_survive_a_restart(scenario: Scenario) -> None:
    scenario.queue("q")
    scenario.policy({"max-length": 1})
    scenario.policy({"max-length": 4}, name="o", is_operator=True)
    scenario.publish(b"a", b"b", delivery_mode=2)
    scenario.restart()
    assert limit(scenario) == (1, "policy p")
    assert scenario.bodies() == [b"b"]
    scenario.policy({"max-length": 9})
    assert limit(scenario) == (4, "operator policy o")


def test_r24_a_policy_names_an_alternate_exchange(scenario: Scenario) -> None:
    scenario.queue("beside")
    scenario.exchange("alternate", "fanout", "beside")
    scenario.exchange("x", "direct")
    scenario.publish(b"lost", exchange="x", to="nowhere")
    record = scenario.policy({"alternate-exchange": "alternate"}, pattern="^x$", apply_to="exchanges")
    scenario.publish(b"found", exchange="x", to="nowhere")
    scenario.gateway.broker.remove_policy(record)
    scenario.publish(b"lost again", exchange="x", to="nowhere")
    assert scenario.bodies("beside") == [b"found"]


def test_r24_the_argument_takes_precedence_over_the_policy(scenario: Scenario) -> None:
    for name in ("one", "two"):
        scenario.queue(name)
        scenario.exchange(f"to-{name}", "fanout", name)
    scenario.exchange("x", "direct", alternate_exchange="to-one")
    scenario.policy({"alternate-exchange": "to-two"}, apply_to="exchanges")
    scenario.publish(b"m", exchange="x", to="nowhere")
    assert (scenario.ready("one"), scenario.ready("two")) == (1, 0)


def test_deleting_a_virtual_host_deletes_its_policies(scenario: Scenario) -> None:
    broker = scenario.gateway.broker
    scenario.policy({"max-length": 1})
    broker.delete_vhost("/")
    assert not broker.policies
    broker.declare_vhost("/")
    scenario.queue("q")
    assert limit(scenario) is None
