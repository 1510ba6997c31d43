"""Definitions are applied as a whole or not at all: every entry that the broker would refuse is reported first."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway.definitions import apply_definitions, parse_definitions, steps_of
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.testing import MemoryBroker

RABBITMQCTL = Path(__file__).parents[1] / "management" / "fixtures" / "rabbitmq-3.10.8-ctl.json"
HUGE = 10**400


@pytest.fixture
def broker() -> MemoryBroker:
    """Return a broker with a virtual host ``shop`` that has one entity of each kind."""
    broker = MemoryBroker()
    shop = broker.kernel.declare_vhost("shop")
    shop.declare_queue("there", is_durable=True, arguments={"x-max-length": 1})
    shop.declare_exchange("there", "topic", is_durable=True)
    shop.declare_exchange("heads", "headers", is_durable=True)
    broker.kernel.limit_vhost("shop", {"max-queues": 2})
    return broker


def state_of(broker: MemoryBroker) -> list[str]:
    broker.commit()
    return sorted(repr(change) for change in broker.store.reopened().recover())


def apply(broker: MemoryBroker, **definitions: object) -> None:
    apply_definitions(parse_definitions(json.dumps(definitions), "f"), broker.kernel, "f", "shop")


def refusals_of(broker: MemoryBroker, **definitions: object) -> list[str]:
    """Return the lines of the error; assert that nothing was applied."""
    before = state_of(broker)
    with pytest.raises(ConfigurationError) as caught:
        apply(broker, **definitions)
    assert state_of(broker) == before
    return str(caught.value).split("\n")


GOOD = {
    "users": [{"name": "new"}],
    "vhosts": [{"name": "branch"}],
    "exchanges": [{"name": "made", "type": "topic"}],
    "queues": [{"name": "q1"}],
    "bindings": [{"source": "made", "destination": "q1", "routing_key": "a.#"}],
    "policies": [{"name": "p", "pattern": "^q", "definition": {"max-length": 1}}],
}
PERMISSION = {"user": "new", "vhost": "shop", "configure": "", "write": "", "read": ""}
RULE = {"name": "p", "pattern": "x", "definition": {"max-length": 1}}

BAD = [
    #            category             entry                                             reported error
    pytest.param("users", {"name": "u" * 256}, "user name of 256 bytes", id="user: name"),
    pytest.param("users", {"name": "u", "limits": {"max-x": 1}}, "Unrecognised terms", id="user: limit"),
    pytest.param("vhosts", {"name": "v", "default_queue_type": "x"}, "unsupported default", id="vhost: type"),
    pytest.param("vhosts", {"name": "v", "limits": {"max-queues": HUGE}}, "64 bits", id="vhost: limit"),
    pytest.param("vhosts", {"name": "v", "limits": [["max-queues", "x"]]}, "should be a number", id="vhost: pairs"),
    pytest.param("permissions", {**PERMISSION, "user": "who"}, "no user 'who'", id="permission: user"),
    pytest.param("permissions", {**PERMISSION, "vhost": "where"}, "vhost where not found", id="permission: vhost"),
    pytest.param("permissions", {**PERMISSION, "read": r"(a)\1"}, "a backreference", id="permission: pattern"),
    pytest.param("topic_permissions", {"user": "new", "exchange": "x", "write": "(", "read": ""}, "missing", id="key"),
    pytest.param("exchanges", {"name": "x", "type": "x-none"}, "unknown exchange type 'x-none'", id="exchange: type"),
    pytest.param("exchanges", {"name": "x" * 256, "type": "direct"}, "exchange name of 256", id="exchange: name"),
    pytest.param(
        "exchanges", {"name": "x", "type": "direct", "arguments": {"alternate-exchange": 1}},
        ".arguments.alternate-exchange: invalid type", id="exchange: alternate",
    ),
    pytest.param("exchanges", {"name": "x", "type": "x-delayed-message"}, "'x-delayed-type'", id="exchange: delayed"),
    pytest.param(
        "queues", {"name": "q", "arguments": {"x-message-ttl": -1}},
        ".arguments.x-message-ttl: invalid arg 'x-message-ttl' for queue 'q' in vhost 'shop': {value_negative,-1}",
        id="queue: argument",
    ),
    pytest.param(
        "queues", {"name": "q", "durable": False, "arguments": {"x-queue-type": "quorum"}}, "non-durable", id="quorum"
    ),
    pytest.param("queues", {"name": "q\ud800"}, "unicode", id="queue: lone surrogate"),
    pytest.param("queues", {"name": "q2"}, "queue limit in vhost 'shop' (2) is reached", id="queue: one too many"),
    pytest.param("bindings", {"source": "made", "destination": "q1", "routing_key": "k\ud800"}, "UTF-8", id="binding"),
    pytest.param(
        "bindings", {"source": "heads", "destination": "there", "arguments": {"x-match": "some"}}, "x-match",
        id="binding: refused by the type of an existing exchange",
    ),
    pytest.param("policies", {**RULE, "definition": {"max-length": -1}}, "-1 is not a valid", id="policy: value"),
    pytest.param("policies", {**RULE, "definition": {"nope": 1}}, "not recognised policy settings", id="policy: key"),
    pytest.param("policies", {**RULE, "pattern": "a(?=b)"}, "lookahead '(?=' is not supported", id="policy: pattern"),
    pytest.param(
        "parameters", {"component": "operator_policy", "name": "o", "value": {**RULE, "definition": {"nope": 1}}},
        "not recognised policy settings", id="operator policy",
    ),
    pytest.param(
        "parameters", {"component": "vhost-limits", "name": "limits", "value": {"max-x": 1}}, "Unrecognised terms",
        id="limits as a parameter",
    ),
    pytest.param("parameters", {"component": "c", "name": "n", "value": HUGE}, "64 bits", id="parameter"),
    pytest.param("global_parameters", {"name": "n" * 256, "value": 1}, "parameter name of 256", id="global parameter"),
]  # fmt: skip


@pytest.mark.parametrize(("category", "entry", "reason"), BAD)
def test_one_invalid_entry_is_reported_with_its_place_and_nothing_is_applied(
    broker: MemoryBroker, category: str, entry: Mapping[str, object], reason: str
) -> None:
    before = GOOD.get(category, [])
    (line,) = refusals_of(broker, **{**GOOD, category: [*before, entry]})
    assert line.startswith(f"f: {category}[{len(before)}]")
    assert reason in line


def test_all_invalid_entries_are_reported_at_once(broker: MemoryBroker) -> None:
    lines = refusals_of(
        broker,
        users=[{"name": "u" * 256}, {"name": "fine"}],
        permissions=[{**PERMISSION, "user": "who"}],
        queues=[{"name": "a", "arguments": {"x-expires": 0}}, {"name": "b", "vhost": "where"}],
    )
    assert [line.split(": ")[1] for line in lines] == [
        "users[0]", "permissions[0]", "queues[0].arguments.x-expires", "queues[1]",
    ]  # fmt: skip


def test_at_most_a_thousand_invalid_entries_are_reported(broker: MemoryBroker) -> None:
    lines = refusals_of(broker, queues=[{"name": "q", "vhost": "where"}] * 1200)
    assert len(lines) == 1001
    assert lines[-1] == "f: and 200 more"


def test_transient_queues_are_refused_unless_permitted() -> None:
    broker = MemoryBroker(permits_transient_queues=False)
    broker.kernel.declare_vhost("shop")
    assert isinstance(broker.kernel.queue_rules, QueueRules)
    (line,) = refusals_of(broker, queues=[{"name": "q", "durable": False}])
    assert "transient non-exclusive queues are not permitted" in line


def test_valid_definitions_can_be_applied_twice(broker: MemoryBroker) -> None:
    apply(broker, **GOOD)
    shop = broker.kernel.vhost("shop")
    assert [binding.routing_key for binding in shop.bindings.of(shop.exchange("made"))] == ["a.#"]
    before = state_of(broker)
    apply(broker, **GOOD)
    assert state_of(broker) == before


def test_existing_entities_with_other_properties_stay_unchanged(broker: MemoryBroker) -> None:
    apply(broker, queues=[{"name": "there", "arguments": {"x-max-length": 2}}])
    assert broker.kernel.vhost("shop").queue("there").arguments == {"x-max-length": 1}


def test_limits_in_the_definitions_apply_to_their_own_queues(broker: MemoryBroker) -> None:
    limits = {"component": "vhost-limits", "name": "limits", "value": [["max-queues", 3]]}
    apply(broker, parameters=[limits], queues=[{"name": "a"}, {"name": "b"}])
    assert len(broker.kernel.vhost("shop").queue_by_name) == 3
    (line,) = refusals_of(broker, queues=[{"name": "c"}])
    assert "queue limit in vhost 'shop' (3) is reached" in line


def test_bindings_above_the_limit_are_reported_and_existing_ones_count_once(broker: MemoryBroker) -> None:
    broker.kernel.limit_vhost("shop", {"max-bindings": 1})
    bound = {"source": "there", "destination": "there", "routing_key": "a"}
    apply(broker, bindings=[bound, bound])
    apply(broker, bindings=[bound])
    (line,) = refusals_of(broker, bindings=[bound, {**bound, "routing_key": "b"}])
    assert line.startswith("f: bindings[1]: ")
    assert "limit" in line


def test_each_entry_is_checked_and_applied_in_a_step_of_its_own(broker: MemoryBroker) -> None:
    definitions = parse_definitions(
        json.dumps({"exchanges": [{"name": f"x{n}", "type": "topic"} for n in range(50)]}), "f"
    )
    shop = broker.kernel.vhost("shop")
    seen = [len(shop.exchange_by_name) for _ in steps_of(definitions, broker.kernel, "f", "shop")]
    began = seen[0]
    assert seen == [began] * 50 + [began + number for number in range(1, 51)]


def test_a_refusal_after_the_check_is_reported(broker: MemoryBroker) -> None:
    steps = steps_of(parse_definitions('{"queues": [{"name": "a", "vhost": "shop"}]}', "f"), broker.kernel, "f")
    next(steps)
    broker.kernel.delete_vhost("shop")
    with pytest.raises(ConfigurationError, match=r"queues\[0\].*the broker changed after the check"):
        next(steps)


def test_an_export_of_rabbitmqctl_with_lists_of_pairs_is_applied(caplog: pytest.LogCaptureFixture) -> None:
    broker = MemoryBroker()
    apply_definitions(parse_definitions(RABBITMQCTL.read_text(), "f"), broker.kernel, "f")
    shop = broker.kernel.vhost("shop")
    assert shop.record.limits == {"max-connections": 10, "max-queues": 20}
    user = broker.kernel.directory.user("anna")
    assert user is not None
    assert (user.limits, user.tags) == ({"max-channels": 5}, ["policymaker"])
    assert broker.kernel.policies["shop", "op", True].definition == {"max-length": 100}
    assert shop.queue("q2").settings.number("max-length") == 5
    assert shop.queue("q1").settings.number("delivery-limit") == 5
    assert not shop.policies.fault(broker.kernel.policies["shop", "fed", False])
    logged = [vars(record) for record in caplog.records if record.message == "parameter without effect"]
    assert len(logged) == 2
    assert "component shovel not found" in repr(logged[0])
    assert "component federation-upstream not found" in repr(logged[1])
