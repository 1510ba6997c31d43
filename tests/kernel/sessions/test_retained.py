"""Retained messages: the last one of each topic, found by topic filter, and stored over restarts."""

import tracemalloc
from collections import deque
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.events import Event
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.testing import MemoryBroker
from tests.effort import examples
from tests.kernel.session_clients import durable_entities
from tests.kernel.sessions.test_subscriptions import FILTERS, TOPICS, matches


def message(topic: str, body: bytes = b"hi", expiry_s: int | None = None) -> Message:
    expiration = None if expiry_s is None else str(expiry_s * 1000)
    header = native_header(Properties(delivery_mode=2, expiration=expiration))
    return Message("amq.topic", topic.replace("/", "."), header, body)


def keep(broker: MemoryBroker, topic: str, body: bytes = b"hi", expiry_s: int | None = None) -> bool:
    return broker.vhost.retained.keep(message(topic, body, expiry_s))


def found(broker: MemoryBroker, filter: str) -> list[bytes]:
    """Return the bodies of the retained messages that match a filter, sorted."""
    key = filter.replace("/", ".").replace("+", "*")
    return sorted(message.body for message in broker.vhost.retained.matching(key))


@pytest.fixture
def topics(broker: MemoryBroker) -> MemoryBroker:
    """A broker with retained messages of several topics."""
    for topic in ("topics", "topics/attic", "topics/cellar", "topics/cellar/wine", "garden", "$SYS/load", "/"):
        keep(broker, topic, topic.encode())
    return broker


# ---- Lookup ----------------------------------------------------------------------------------------------------------


def test_a_topic_matches_itself_only(topics: MemoryBroker) -> None:
    assert found(topics, "topics/attic") == [b"topics/attic"]
    assert found(topics, "topics/roof") == []
    assert found(topics, "cellar") == []


def test_a_plus_matches_one_level(topics: MemoryBroker) -> None:
    assert found(topics, "topics/+") == [b"topics/attic", b"topics/cellar"]
    assert found(topics, "+") == [b"garden", b"topics"]
    assert found(topics, "+/+") == [b"/", b"topics/attic", b"topics/cellar"]
    assert found(topics, "+/+/wine") == [b"topics/cellar/wine"]


def test_a_hash_matches_the_level_and_all_levels_below(topics: MemoryBroker) -> None:
    assert found(topics, "topics/cellar/#") == [b"topics/cellar", b"topics/cellar/wine"]
    assert len(found(topics, "#")) == 6


def test_a_wildcard_does_not_match_a_leading_dollar(topics: MemoryBroker) -> None:
    assert b"$SYS/load" not in found(topics, "#") + found(topics, "+/load")
    assert found(topics, "$SYS/#") == found(topics, "$SYS/+") == found(topics, "$SYS/load") == [b"$SYS/load"]


def test_a_wildcard_character_in_a_topic_is_literal(broker: MemoryBroker) -> None:
    keep(broker, "*", b"star")
    keep(broker, "a/#/b", b"hash")
    keep(broker, "a/b/b", b"plain")
    assert found(broker, "+") == [b"star"]
    broker.vhost.retained.clear("a.#.b")
    assert found(broker, "a/#") == [b"plain"]


# ---- Keeping and clearing --------------------------------------------------------------------------------------------


def test_the_last_message_of_a_topic_replaces_the_one_before(topics: MemoryBroker) -> None:
    count, size = len(topics.vhost.retained), topics.vhost.retained.bytes
    assert keep(topics, "topics/attic", b"warm")
    assert found(topics, "topics/attic") == [b"warm"]
    assert len(topics.vhost.retained) == count
    assert topics.vhost.retained.bytes == size - len(b"topics/attic") + len(b"warm")


def test_an_empty_message_clears_the_topic(topics: MemoryBroker) -> None:
    assert keep(topics, "topics", b"")
    assert found(topics, "topics") == []
    assert found(topics, "topics/+") == [b"topics/attic", b"topics/cellar"]


def test_clearing_a_topic_without_a_message_has_no_effect(topics: MemoryBroker) -> None:
    for topic in ("topics/roof", "topics/attic/box", "nowhere"):
        assert keep(topics, topic, b"")
    topics.vhost.retained.clear("")
    assert len(topics.vhost.retained) == 7


def test_erasing_removes_all_nodes_and_records(topics: MemoryBroker) -> None:
    deque(topics.vhost.retained.erasing(), maxlen=0)
    assert (len(topics.vhost.retained), topics.vhost.retained.bytes) == (0, 0)
    assert topics.vhost.retained._root.is_bare
    topics.commit()
    assert durable_entities(topics) == []


# ---- Limits ----------------------------------------------------------------------------------------------------------


def test_the_number_of_retained_messages_is_limited(topics: MemoryBroker) -> None:
    topics.vhost.retained.max_messages = 7
    assert not keep(topics, "topics/roof")
    assert keep(topics, "topics/attic", b"warm")
    assert keep(topics, "topics/attic", b"")
    assert keep(topics, "topics/roof")
    assert not keep(topics, "topics/attic")


def test_the_size_of_retained_messages_is_limited(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_bytes = 1200
    assert keep(broker, "a", bytes(600))
    assert not keep(broker, "b", bytes(600))
    assert not keep(broker, "a", bytes(1000))
    assert found(broker, "a") == [bytes(600)]
    assert keep(broker, "a", bytes(610))


def test_a_limit_of_zero_retains_nothing(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_messages = 0
    assert not keep(broker, "a")


# ---- Expiry ----------------------------------------------------------------------------------------------------------


def test_a_retained_message_expires_on_time(broker: MemoryBroker) -> None:
    keep(broker, "a", b"fleeting", expiry_s=10)
    broker.advance(9.999)
    assert found(broker, "a") == found(broker, "#") == [b"fleeting"]
    broker.advance(0.001)
    assert found(broker, "a") == found(broker, "#") == []


def test_an_expired_message_makes_room(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_messages = 2
    keep(broker, "a", expiry_s=10)
    keep(broker, "b")
    assert not keep(broker, "c")
    broker.advance(10)
    assert keep(broker, "c")
    broker.commit()
    assert len(durable_entities(broker, "retained")) == 2


def test_expired_messages_are_removed_periodically(topics: MemoryBroker) -> None:
    keep(topics, "a", expiry_s=10)
    keep(topics, "b", expiry_s=70)
    topics.advance(60)
    assert len(topics.vhost.retained) == 8, "the second one has not expired yet"
    topics.advance(60)
    assert len(topics.vhost.retained) == 7


def test_refused_messages_are_reported_once_a_minute(topics: MemoryBroker) -> None:
    events: list[Event] = []
    topics.kernel.events.subscribe(events.append)
    retained = topics.vhost.retained
    retained.max_messages = len(retained)
    for _ in range(3):
        assert not retained.keep(message("new"))
    assert [(event.name, event.vhost, event.details["refused"]) for event in events] == [("retained.refused", "/", 1)]
    topics.advance(60)
    assert not retained.keep(message("new"))
    assert [event.details["refused"] for event in events] == [1, 4]


# ---- Restarts --------------------------------------------------------------------------------------------------------


def test_retained_messages_and_their_expiry_survive_a_crash(topics: MemoryBroker) -> None:
    keep(topics, "a", b"fleeting", expiry_s=10)
    keep(topics, "garden", b"")
    topics.commit()
    keep(topics, "not committed")
    topics.advance(9)
    started = topics.crashed()
    assert len(started.vhost.retained) == 7
    assert started.vhost.retained.bytes == sum(kept.size for kept in started.vhost.retained)
    assert found(started, "+") == [b"fleeting", b"topics"]
    started.advance(1)
    assert found(started, "+") == [b"topics"]


def test_retained_messages_are_deleted_with_their_virtual_host(broker: MemoryBroker) -> None:
    broker.kernel.declare_vhost("other").retained.keep(message("a"))
    broker.kernel.delete_vhost("other")
    broker.commit()
    assert durable_entities(broker) == []


# ---- Model -----------------------------------------------------------------------------------------------------------

STEPS: Final = st.lists(
    st.tuples(st.just("keep"), TOPICS, st.binary(max_size=3), st.none() | st.integers(1, 5))
    | st.tuples(st.just("wait"), st.integers(1, 3))
    | st.tuples(st.just("crash")),
    max_size=25,
)
ROOM: Final = 5


@settings(max_examples=examples(150), deadline=None)
@given(STEPS, st.lists(FILTERS | TOPICS, min_size=1, max_size=6))
def test_lookups_match_a_dictionary_of_topics(steps: list[tuple[object, ...]], filters: list[str]) -> None:
    broker = MemoryBroker()
    broker.vhost.retained.max_messages = ROOM
    model: dict[str, tuple[bytes, int]] = {}
    now_s = 0
    for step in steps:
        match step:
            case "keep", str(topic), bytes(body), expiry_s:
                has_room = not body or topic in model or len(model) < ROOM
                assert keep(broker, topic, body, expiry_s) == has_room  # type: ignore[arg-type]
                if not body:
                    model.pop(topic, None)
                elif has_room:
                    model[topic] = (body, now_s + expiry_s if isinstance(expiry_s, int) else 10**9)
            case "wait", int(seconds):
                broker.advance(seconds)
                now_s += seconds
                model = {kept: (held, ends) for kept, (held, ends) in model.items() if ends > now_s}
            case ("crash",):
                broker.commit()
                broker = broker.crashed()
                broker.vhost.retained.max_messages = ROOM
    assert len(broker.vhost.retained) == len(model)
    for filter in filters:
        expected = [body for topic, (body, ends) in model.items() if ends > now_s and matches(filter, topic)]
        assert found(broker, filter) == sorted(expected)


# ---- Transient messages of the broker --------------------------------------------------------------------------------


def test_a_transient_retained_message_can_be_found_and_replaced(broker: MemoryBroker) -> None:
    for body in (b"one", b"two"):
        broker.vhost.retained.keep_transient(message("$SYS/uptime", body))
    assert found(broker, "$SYS/#") == [b"two"]


def test_a_transient_retained_message_is_not_stored(broker: MemoryBroker) -> None:
    broker.commit()
    lsn = broker.kernel.journal.lsn
    broker.vhost.retained.keep_transient(message("$SYS/uptime"))
    broker.vhost.retained.clear("$SYS.uptime")
    broker.vhost.retained.keep_transient(message("$SYS/uptime"))
    broker.commit()
    assert broker.kernel.journal.lsn == lsn
    assert found(broker.crashed(), "$SYS/#") == []


def test_a_transient_retained_message_does_not_count_for_limits(broker: MemoryBroker) -> None:
    retained = broker.vhost.retained
    retained.max_messages = 1
    retained.keep_transient(message("$SYS/uptime"))
    assert (len(retained), retained.bytes, retained.body_bytes) == (0, 0, 0)
    assert keep(broker, "t", b"12345")
    assert (len(retained), retained.body_bytes) == (1, 5)
    retained.clear("$SYS.uptime")
    assert (len(retained), retained.body_bytes) == (1, 5)


def test_a_durable_message_may_replace_a_transient_one_and_vice_versa(broker: MemoryBroker) -> None:
    retained = broker.vhost.retained
    retained.keep_transient(message("t"))
    assert keep(broker, "t", b"12345")
    assert (len(retained), retained.body_bytes) == (1, 5)
    retained.keep_transient(message("t"))
    assert (len(retained), retained.body_bytes) == (0, 0)


def test_a_lookup_by_key_interprets_no_wildcards(topics: MemoryBroker) -> None:
    kept = topics.vhost.retained.get("topics.attic")
    assert kept is not None
    assert kept.message.body == b"topics/attic"
    assert topics.vhost.retained.get("topics.*") is None
    assert topics.vhost.retained.get("#") is None


# ---- Deep topics and walks -------------------------------------------------------------------------------------------


def test_the_size_of_a_topic_includes_its_levels(broker: MemoryBroker) -> None:
    keep(broker, "a/b", b"x")
    shallow = broker.vhost.retained.bytes
    keep(broker, "/" * 100, b"x")
    assert broker.vhost.retained.bytes - shallow > shallow + 100 * 100


def test_a_deep_key_of_an_earlier_version_uses_bounded_memory(broker: MemoryBroker) -> None:
    deep = "." * 60_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    broker.vhost.retained.keep(Message("amq.topic", deep, native_header(Properties(delivery_mode=2)), b"deep"))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 200_000
    retained = broker.vhost.retained
    assert [found.body for found in retained.matching(deep)] == [b"deep"]
    assert [found.body for found in retained.matching("#")] == [b"deep"]
    retained.clear(deep)
    assert retained._root.is_bare


def test_messages_changed_during_a_walk_are_left_out(topics: MemoryBroker) -> None:
    walk = topics.vhost.retained.walk("topics.#")
    seen = [next(walk)]
    keep(topics, "topics/attic", b"warm")
    keep(topics, "topics/roof", b"new")
    keep(topics, "topics/cellar", b"")
    seen += walk
    assert [message.body for message in seen if message is not None] == [b"topics", b"topics/cellar/wine"]


def test_a_walk_yields_after_each_level(topics: MemoryBroker) -> None:
    assert len(list(topics.vhost.retained.walk("#"))) == 10  # the root, and one for each word of the topics
