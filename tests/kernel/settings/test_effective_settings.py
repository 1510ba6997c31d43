"""Effective settings: the strictest or nearest of several values, with its source (R51, R62, R101, R140)."""

import pytest

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.effective_settings import effective

POLICY, OPERATOR, ARGUMENT = "policy p", "operator policy o", "argument"


def policy(is_operator: bool, **definition: Value) -> PolicyRecord:
    keys = {key.replace("_", "-"): value for key, value in definition.items()}
    return PolicyRecord("/", "o" if is_operator else "p", is_operator, ".*", "all", 0, keys)


MERGES = [
    #            setting                 argument  policy  operator  value  source
    *[
        pytest.param(name, values[0], values[1], values[2], value, source, id=f"{name}: {source}")
        for name in ("expires", "message-ttl", "max-length", "max-length-bytes", "max-in-memory-length")
        for values, value, source in (
            ((1, 2, 3), 1, ARGUMENT),
            ((2, 1, 3), 1, POLICY),
            ((3, 2, 1), 1, OPERATOR),
            ((2, 2, 2), 2, POLICY),
        )
    ],
    pytest.param("delivery-limit", 5, 3, None, 3, POLICY, id="delivery-limit: the smaller"),
    pytest.param(
        "delivery-limit", -1, 3, None, 3, POLICY, id="delivery-limit: a limit before no limit, from the policy"
    ),
    pytest.param("delivery-limit", 3, -1, None, 3, ARGUMENT, id="delivery-limit: a limit before no limit"),
    pytest.param("delivery-limit", None, -1, 7, 7, OPERATOR, id="delivery-limit: operator policy"),
    pytest.param("delivery-limit", -1, -1, None, -1, POLICY, id="delivery-limit: no limit"),
    pytest.param("dead-letter-exchange", "a", "p", None, "a", ARGUMENT, id="R101: argument before policy"),
    pytest.param("dead-letter-routing-key", "a", "p", None, "a", ARGUMENT, id="R101: routing key"),
    pytest.param("overflow", "drop-head", "reject-publish", None, "drop-head", ARGUMENT, id="R101: overflow"),
    pytest.param("overflow", None, "reject-publish", None, "reject-publish", POLICY, id="R101: the policy alone"),
    pytest.param("anything", None, "p", "o", "o", OPERATOR, id="R140: the operator policy's, without a merge rule"),
]


@pytest.mark.parametrize(("name", "argument", "by_policy", "by_operator", "value", "source"), MERGES)
def test_effective_value_and_source(
    name: str, argument: Value, by_policy: Value, by_operator: Value, value: Value, source: str
) -> None:
    settings = effective(
        {} if argument is None else {f"x-{name}": argument},
        None if by_policy is None else policy(False, **{name: by_policy}),
        None if by_operator is None else policy(True, **{name: by_operator}),
    )
    assert (settings[name].value, settings[name].source) == (value, source)


def test_r113_a_quorum_queue_has_a_default_delivery_limit() -> None:
    quorum: dict[str, Value] = {"x-queue-type": "quorum"}
    default = effective(quorum)["delivery-limit"]
    assert (default.value, default.source) == (20, "default")
    assert effective(quorum, policy(False, delivery_limit=50)).number("delivery-limit") == 50
    assert effective({**quorum, "x-delivery-limit": -1}).number("delivery-limit") == -1


def test_r151_the_policy_definition_excludes_arguments_and_defaults() -> None:
    settings = effective(
        {"x-max-length": 1, "x-queue-type": "quorum"},
        policy(False, max_length=9, overflow="reject-publish"),
        policy(True, max_length=5, expires=7),
    )
    assert settings.policy_definition == {"max-length": 5, "overflow": "reject-publish", "expires": 7}
    assert settings.number("max-length") == 1


def test_an_exchange_argument_is_a_setting_under_its_own_name() -> None:
    assert (
        effective({"alternate-exchange": "a"}, policy(False, alternate_exchange="p")).text("alternate-exchange") == "a"
    )


def test_a_setting_that_is_not_set_or_of_another_type_is_none() -> None:
    settings = effective({"x-max-length": "many"})
    assert settings.number("max-length") is None
    assert settings.text("overflow") is None
    assert settings.value("overflow") is None
    assert settings.value("max-length") == "many"
