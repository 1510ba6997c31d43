"""Permission patterns and refusals equal RabbitMQ's."""

import pytest

from gateway.access import Operation, Permissions, TopicPatterns
from gateway.access.permissions import REMEMBERED_VERDICTS
from gateway.kernel.errors import AccessRefused, PreconditionFailed

MATCHES = [
    #            pattern     name           allowed
    pytest.param(".*", "anything", True, id="everything"),
    pytest.param("", "anything", False, id="the empty pattern matches nothing"),
    pytest.param("", "", False, id="not even the default exchange"),
    pytest.param("^$", "q", False, id="nor does an anchored empty one"),
    pytest.param("mine", "not-mine-at-all", True, id="a pattern matches anywhere"),
    pytest.param("^mine", "not-mine", False, id="unless it is anchored"),
    pytest.param("^mine$", "mine2", False, id="at both ends"),
    pytest.param("^(a|b)-", "b-queue", True, id="alternatives"),
    pytest.param("^amq\\.default$", "", True, id="the default exchange has a name"),
    pytest.param("^ü", "überweisungen", True, id="letters beyond ASCII"),
]


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize(("pattern", "name", "is_allowed"), MATCHES)
def test_the_names_that_a_pattern_allows(operation: Operation, pattern: str, name: str, is_allowed: bool) -> None:
    configure, write, read = (pattern if each is operation else "x" for each in Operation)
    permissions = Permissions("u", "/", configure, write, read)
    assert permissions.may(operation, name) is is_allowed
    assert permissions.may(operation, name) is is_allowed  # from the cache


def test_each_operation_has_its_own_pattern() -> None:
    permissions = Permissions("u", "/", configure="^c", write="^w", read="^r")
    allowed = {op: [name for name in "cwr" if permissions.may(op, name)] for op in Operation}
    assert allowed == {Operation.CONFIGURE: ["c"], Operation.WRITE: ["w"], Operation.READ: ["r"]}


REFUSALS = [
    ("queue", "t", "access to queue 't' in vhost 'shop' refused for user 'limited'"),
    ("exchange", "xf", "access to exchange 'xf' in vhost 'shop' refused for user 'limited'"),
    ("exchange", "", "access to exchange 'amq.default' in vhost 'shop' refused for user 'limited'"),
]


@pytest.mark.parametrize(("kind", "name", "text"), REFUSALS)
def test_a_refusal_has_the_text_of_rabbitmq(kind: str, name: str, text: str) -> None:
    permissions = Permissions("limited", "shop", "^mine", "^mine", "^mine")
    permissions.require(Operation.WRITE, kind, "mine")
    with pytest.raises(AccessRefused) as refusal:
        permissions.require(Operation.WRITE, kind, name)
    assert str(refusal.value) == text


def test_an_invalid_pattern_is_refused_at_once() -> None:
    with pytest.raises(PreconditionFailed):
        Permissions("u", "/", "(", "", "")


def test_names_beyond_the_cache_size_are_checked_correctly() -> None:
    permissions = Permissions("u", "/", "", "7$", "")
    names = [f"q{number}" for number in range(3 * REMEMBERED_VERDICTS)]
    assert [name for name in names if permissions.may(Operation.WRITE, name)] == [n for n in names if n.endswith("7")]


# Topics

TOPICS = {"events": TopicPatterns(write=r"^{vhost}\.{username}\.", read=r"^{client_id}$")}


def topic_permissions(user: str = "anna") -> Permissions:
    return Permissions(user, "shop", ".*", ".*", ".*", TOPICS)


def test_without_topic_patterns_every_routing_key_is_allowed() -> None:
    permissions = Permissions("anna", "shop", "", "", "")
    assert not permissions.restricts_topics
    permissions.require_topic(Operation.WRITE, "events", "any.key")


def test_other_exchanges_are_not_restricted() -> None:
    assert topic_permissions().restricts_topics
    topic_permissions().require_topic(Operation.WRITE, "amq.topic", "any.key")


def test_variables_are_replaced_by_the_connection_s_values() -> None:
    permissions = topic_permissions()
    assert permissions.may_use_topic(Operation.WRITE, "events", "shop.anna.order")
    assert not permissions.may_use_topic(Operation.WRITE, "events", "shop.bert.order")
    assert permissions.may_use_topic(Operation.READ, "events", "c1", {"client_id": "c1"})
    assert not permissions.may_use_topic(Operation.READ, "events", "c2", {"client_id": "c1"})


def test_an_unknown_variable_is_not_replaced() -> None:
    assert not topic_permissions().may_use_topic(Operation.READ, "events", "c1")


@pytest.mark.parametrize("value", [".*", "a|b", "(", "[a-z]+", "{username}"])
def test_a_value_cannot_widen_the_pattern(value: str) -> None:
    permissions = topic_permissions()
    assert not permissions.may_use_topic(Operation.READ, "events", "a", {"client_id": value})


@pytest.mark.parametrize("value", ["a b", "a\nb", "a\x00b", "a\\b", "ä", "a-b_c~d#e&f", "{", "a" * 65_535])
def test_special_characters_in_a_value_match_literally(value: str) -> None:
    permissions = topic_permissions()
    is_allowed = permissions.may_use_topic(Operation.READ, "events", value, {"client_id": value})
    assert is_allowed is (len(value) < 4096), "a pattern that is too long after replacement allows nothing"
    assert not permissions.may_use_topic(Operation.READ, "events", value + "x", {"client_id": value})


def test_a_cached_topic_result_is_for_its_own_variables_only() -> None:
    permissions = topic_permissions()
    for client_id in ("c1", "c2", "c1"):
        assert permissions.may_use_topic(Operation.READ, "events", "c1", {"client_id": client_id}) is (
            client_id == "c1"
        )


def test_a_refused_topic_has_the_text_of_rabbitmq() -> None:
    with pytest.raises(AccessRefused) as refusal:
        topic_permissions().require_topic(Operation.WRITE, "events", "bad")
    assert str(refusal.value) == "access to topic 'bad' in exchange 'events' in vhost 'shop' refused for user 'anna'"
