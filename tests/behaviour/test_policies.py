"""What operators say of queues and exchanges holds at once, for what there is and what will be (R24, R139, R140)."""

import pytest

from gateway.kernel.messages.message import Value
from tests.behaviour.edges import Stage


def limit(stage: Stage, queue: str = "q") -> tuple[Value, str] | None:
    setting = stage.vhost.queue(queue).settings.get("max-length")
    return None if setting is None else (setting.value, setting.source)


def test_r139_a_policy_applies_to_existing_and_new_queues(stage: Stage) -> None:
    stage.queue("old")
    stage.policy({"max-length": 1})
    stage.queue("new")
    assert limit(stage, "old") == limit(stage, "new") == (1, "policy p")


def test_r139_a_changed_or_removed_policy_takes_effect_everywhere(stage: Stage) -> None:
    stage.queue("q")
    stage.policy({"max-length": 1})
    record = stage.policy({"max-length": 2})
    assert limit(stage) == (2, "policy p")
    stage.gateway.broker.remove_policy(record)
    assert limit(stage) is None


def test_r139_only_the_policy_with_the_highest_priority_applies(stage: Stage) -> None:
    stage.queue("q")
    stage.policy({"max-length": 1}, name="low", priority=1)
    high = stage.policy({"message-ttl": 5000}, name="high", priority=2)
    assert limit(stage) is None
    stage.gateway.broker.remove_policy(high)
    assert limit(stage) == (1, "policy low")


@pytest.mark.parametrize(
    ("apply_to", "holds_for"),
    [
        ("all", {"classic", "quorum", "exchange"}),
        ("queues", {"classic", "quorum"}),
        ("classic_queues", {"classic"}),
        ("quorum_queues", {"quorum"}),
        ("streams", set()),
        ("exchanges", {"exchange"}),
    ],
)
def test_r139_a_policy_applies_to_the_selected_types(stage: Stage, apply_to: str, holds_for: set[str]) -> None:
    stage.queue("classic")
    stage.queue("quorum", {"x-queue-type": "quorum"})
    stage.exchange("exchange")
    stage.policy({"message-ttl": 1000}, apply_to=apply_to)
    settings = {queue.name: queue.settings for queue in stage.vhost.queue_by_name.values()}
    settings["exchange"] = stage.vhost.exchange("exchange").settings
    assert {name for name in settings if settings[name].policy is not None} == holds_for


def test_r139_the_pattern_matches_anywhere_unless_anchored(stage: Stage) -> None:
    for name in ("orders", "reorders", "bills"):
        stage.queue(name)
    stage.policy({"max-length": 1}, pattern="orders")
    assert [limit(stage, name) is not None for name in ("orders", "reorders", "bills")] == [True, True, False]
    stage.policy({"max-length": 1}, pattern="^orders$")
    assert [limit(stage, name) is not None for name in ("orders", "reorders", "bills")] == [True, False, False]


def test_r140_operator_policies_take_precedence(stage: Stage) -> None:
    stage.queue("q")
    stage.policy({"max-length": 5, "overflow": "reject-publish"})
    stage.policy({"max-length": 3, "message-ttl": 9000}, name="o", is_operator=True)
    settings = stage.vhost.queue("q").settings
    assert settings.policy_definition == {"max-length": 3, "overflow": "reject-publish", "message-ttl": 9000}
    assert limit(stage) == (3, "operator policy o")


def test_r153_a_change_of_policy_loses_no_message_and_no_consumer(stage: Stage) -> None:
    stage.queue("q")
    stage.publish(b"a", b"b")
    held = stage.get()
    stage.policy({"queue-mode": "lazy", "max-length": 10})
    stage.client.consume("q")
    assert [received.body for received in stage.client.received()] == [b"b"]
    assert held.body == b"a"


def test_policies_survive_a_restart(stage: Stage) -> None:
    stage.queue("q")
    stage.policy({"max-length": 1})
    stage.policy({"max-length": 4}, name="o", is_operator=True)
    stage.publish(b"a", b"b", delivery_mode=2)
    stage.restart()
    assert limit(stage) == (1, "policy p")
    assert stage.bodies() == [b"b"]
    stage.policy({"max-length": 9})
    assert limit(stage) == (4, "operator policy o")


def test_r24_a_policy_names_an_alternate_exchange(stage: Stage) -> None:
    stage.queue("beside")
    stage.exchange("alternate", "fanout", "beside")
    stage.exchange("x", "direct")
    stage.publish(b"lost", exchange="x", to="nowhere")
    record = stage.policy({"alternate-exchange": "alternate"}, pattern="^x$", apply_to="exchanges")
    stage.publish(b"found", exchange="x", to="nowhere")
    stage.gateway.broker.remove_policy(record)
    stage.publish(b"lost again", exchange="x", to="nowhere")
    assert stage.bodies("beside") == [b"found"]


def test_r24_the_argument_takes_precedence_over_the_policy(stage: Stage) -> None:
    for name in ("one", "two"):
        stage.queue(name)
        stage.exchange(f"to-{name}", "fanout", name)
    stage.exchange("x", "direct", alternate_exchange="to-one")
    stage.policy({"alternate-exchange": "to-two"}, apply_to="exchanges")
    stage.publish(b"m", exchange="x", to="nowhere")
    assert (stage.ready("one"), stage.ready("two")) == (1, 0)


def test_deleting_a_virtual_host_deletes_its_policies(stage: Stage) -> None:
    broker = stage.gateway.broker
    stage.policy({"max-length": 1})
    broker.delete_vhost("/")
    assert not broker.policies
    broker.declare_vhost("/")
    stage.queue("q")
    assert limit(stage) is None
