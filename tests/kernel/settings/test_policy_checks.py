"""Validation of policies, with RabbitMQ's error texts (R139, R140)."""

import pytest

from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.policy_checks import OBSOLETE
from gateway.testing import MemoryBroker

REFUSED = [
    #            definition                            RabbitMQ's error
    pytest.param({}, "no policy provided", id="empty"),
    pytest.param({"foo": 1}, '[{<<"foo">>,1}] are not recognised policy settings', id="unknown"),
    pytest.param({"max-length": "x"}, '<<"x">> is not a valid maximum length', id="length: text"),
    pytest.param({"max-length": -1}, "-1 is not a valid maximum length", id="length: negative"),
    pytest.param({"max-length": 1.5}, "1.5 is not a valid maximum length", id="length: fraction"),
    pytest.param({"max-length-bytes": -1}, "-1 is not a valid maximum length in bytes", id="bytes"),
    pytest.param({"message-ttl": -1}, "-1 is not a valid message TTL", id="ttl: negative"),
    pytest.param({"message-ttl": True}, "true is not a valid message TTL", id="ttl: boolean"),
    pytest.param({"expires": 0}, "0 is not a valid queue expiry", id="expires"),
    pytest.param({"overflow": "bad"}, '<<"bad">> is not a valid overflow value', id="overflow"),
    pytest.param({"overflow": 1}, "1 is not a valid overflow value", id="overflow: number"),
    pytest.param({"queue-mode": "x"}, '<<"x">> is not a valid queue-mode value', id="mode"),
    pytest.param({"queue-version": 3}, "3 is not a valid queue-version value", id="version"),
    pytest.param({"delivery-limit": -2}, "-2 is not a valid delivery limit", id="delivery limit"),
    pytest.param({"dead-letter-exchange": 1}, "1 is not a valid dead letter exchange name", id="dlx"),
    pytest.param({"dead-letter-routing-key": 1}, "1 is not a valid dead letter routing key", id="dlrk"),
    pytest.param({"dead-letter-strategy": "x"}, '<<"x">> is not a valid dead letter strategy', id="strategy"),
    pytest.param({"alternate-exchange": 1}, "1 is not a valid alternate exchange name", id="alternate"),
    pytest.param({"queue-leader-locator": "x"}, '<<"x">> is not a valid queue leader locator value', id="leader"),
    pytest.param({"queue-master-locator": "x"}, '<<"x">> invalid queue-master-locator value', id="master"),
    pytest.param({"max-in-memory-length": -1}, "-1 is not a valid maximum memory in bytes", id="in memory"),
    pytest.param({"max-age": "7"}, '<<"7">> is not a valid max age', id="age"),
    pytest.param({"expire-mode": "tail"}, '<<"tail">> is not a valid expire mode', id="expire mode"),
    pytest.param({"delayed-delivery": 1}, "1 is not a valid delayed-delivery value", id="delayed delivery"),
    pytest.param({"message-deduplication": "x"}, '<<"x">> is not a valid message-deduplication value', id="duplicates"),
    pytest.param({"cache-size": 0}, "0 is not a valid cache size", id="cache size"),
    pytest.param({"cache-ttl": True}, "true is not a valid cache TTL", id="cache TTL"),
    pytest.param({"retry-delays": 5}, "5 is not a valid list of retry delays", id="delays: a number"),
    pytest.param({"retry-delays": [1, 2.5]}, "[1,2.5] is not a valid list of retry delays", id="delays: fraction"),
    pytest.param({"retry-delays": [-1]}, "[-1] is not a valid list of retry delays", id="delays: negative"),
    pytest.param({"max-length": -1, "foo": 2}, "-1 is not a valid maximum length", id="first fault only"),
]

ACCEPTED = [
    {"max-length": 0},
    {"message-ttl": 0},
    {"expires": 1},
    {"delivery-limit": -1},
    {"dead-letter-routing-key": "k"},
    {"ha-mode": "all"},
    {"queue-mode": "lazy", "queue-version": 1},
    {"max-age": "7D"},
    {"expire-mode": "head", "delayed-delivery": False, "retry-delays": [0, 315_360_000_000]},
    {"message-deduplication": True, "cache-size": 1, "cache-ttl": 1},
]


def put(broker: MemoryBroker, definition: dict[str, Value], is_operator: bool = False, **others: str) -> None:
    fields = {"vhost": "/", "pattern": ".*", "apply_to": "all", **others}
    broker.kernel.put_policy(
        PolicyRecord(fields["vhost"], "p", is_operator, fields["pattern"], fields["apply_to"], 0, definition)
    )


@pytest.mark.parametrize(("definition", "text"), REFUSED)
def test_an_invalid_definition_is_refused(broker: MemoryBroker, definition: dict[str, Value], text: str) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        put(broker, definition)
    assert str(refusal.value) == f"Validation failed\n\n{text}\n"
    assert not broker.kernel.policies


@pytest.mark.parametrize("definition", ACCEPTED, ids=str)
def test_a_valid_definition_is_accepted(broker: MemoryBroker, definition: dict[str, Value]) -> None:
    put(broker, definition)
    assert [record.definition for record in broker.kernel.policies.values()] == [definition]


@pytest.mark.parametrize(
    "key", ["dead-letter-exchange", "overflow", "alternate-exchange", "queue-mode", "federation-upstream"]
)
def test_r140_an_operator_policy_sets_limits_only(broker: MemoryBroker, key: str) -> None:
    with pytest.raises(PreconditionFailed, match="are not recognised policy settings"):
        put(broker, {key: "drop-head"}, is_operator=True)


@pytest.mark.parametrize("key", sorted(OBSOLETE))
def test_r142_an_operator_policy_may_have_keys_of_mirrored_queues(broker: MemoryBroker, key: str) -> None:
    put(broker, {key: "all", "max-length": 1}, is_operator=True)
    (record,) = broker.kernel.policies.values()
    assert broker.vhost.policies.fault(record) == f"no effect: {key}"
    assert broker.vhost.declare_queue("q").settings.number("max-length") == 1


def test_an_invalid_pattern_is_refused(broker: MemoryBroker) -> None:
    with pytest.raises(PreconditionFailed, match="pattern should be regular expression but is invalid"):
        put(broker, {"max-length": 1}, pattern="^x(")


def test_an_unknown_apply_to_or_virtual_host_is_refused(broker: MemoryBroker) -> None:
    with pytest.raises(PreconditionFailed, match="apply-to 'bogus' unrecognised"):
        put(broker, {"max-length": 1}, apply_to="bogus")
    with pytest.raises(NotAllowed):
        put(broker, {"max-length": 1}, vhost="elsewhere")
