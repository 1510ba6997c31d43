"""Retained messages: the last one of each topic, found by topic and by wildcard, kept through restarts."""

import tracemalloc
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.events import Event
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import plain_header
from gateway.testing import MemoryBroker
from tests.effort import examples
from tests.kernel.session_clients import durable_entities
from tests.kernel.test_subscriptions import FILTERS, TOPICS, matches


def message(topic: str, body: bytes = b"hi", expiry_s: int | None = None) -> Message:
    expiration = None if expiry_s is None else str(expiry_s * 1000)
    header = plain_header(Properties(delivery_mode=2, expiration=expiration))
    return Message("amq.topic", topic.replace("/", "."), header, body)


def keep(broker: MemoryBroker, topic: str, body: bytes = b"hi", expiry_s: int | None = None) -> bool:
    return broker.vhost.retained.keep(message(topic, body, expiry_s))


def found(broker: MemoryBroker, filter: str) -> list[bytes]:
    """The bodies of what is retained for a filter, sorted."""
    key = filter.replace("/", ".").replace("+", "*")
    return sorted(message.body for message in broker.vhost.retained.matching(key))


@pytest.fixture
def house(broker: MemoryBroker) -> MemoryBroker:
    """A broker that retains the temperatures of a house."""
    for topic in ("house", "house/attic", "house/cellar", "house/cellar/wine", "garden", "$SYS/load", "/"):
        keep(broker, topic, topic.encode())
    return broker


# ---- Finding ---------------------------------------------------------------------------------------------------------


def test_a_topic_finds_its_own(house: MemoryBroker) -> None:
    assert found(house, "house/attic") == [b"house/attic"]
    assert found(house, "house/roof") == []
    assert found(house, "cellar") == []


def test_a_plus_stands_for_one_level(house: MemoryBroker) -> None:
    assert found(house, "house/+") == [b"house/attic", b"house/cellar"]
    assert found(house, "+") == [b"garden", b"house"]
    assert found(house, "+/+") == [b"/", b"house/attic", b"house/cellar"]
    assert found(house, "+/+/wine") == [b"house/cellar/wine"]


def test_a_hash_stands_for_all_below_and_the_level_itself(house: MemoryBroker) -> None:
    assert found(house, "house/cellar/#") == [b"house/cellar", b"house/cellar/wine"]
    assert len(found(house, "#")) == 6


def test_what_begins_with_a_dollar_is_found_by_who_says_so(house: MemoryBroker) -> None:
    assert b"$SYS/load" not in found(house, "#") + found(house, "+/load")
    assert found(house, "$SYS/#") == found(house, "$SYS/+") == found(house, "$SYS/load") == [b"$SYS/load"]


def test_a_wildcard_in_a_topic_is_a_letter(broker: MemoryBroker) -> None:
    keep(broker, "*", b"star")
    keep(broker, "a/#/b", b"hash")
    keep(broker, "a/b/b", b"plain")
    assert found(broker, "+") == [b"star"]
    broker.vhost.retained.clear("a.#.b")
    assert found(broker, "a/#") == [b"plain"]


# ---- Keeping and clearing --------------------------------------------------------------------------------------------


def test_the_last_message_of_a_topic_replaces_the_one_before(house: MemoryBroker) -> None:
    count, size = len(house.vhost.retained), house.vhost.retained.bytes
    assert keep(house, "house/attic", b"warm")
    assert found(house, "house/attic") == [b"warm"]
    assert len(house.vhost.retained) == count
    assert house.vhost.retained.bytes == size - len(b"house/attic") + len(b"warm")


def test_an_empty_one_clears(house: MemoryBroker) -> None:
    assert keep(house, "house", b"")
    assert found(house, "house") == []
    assert found(house, "house/+") == [b"house/attic", b"house/cellar"]


def test_clearing_what_is_not_there_is_nothing(house: MemoryBroker) -> None:
    for topic in ("house/roof", "house/attic/box", "nowhere"):
        assert keep(house, topic, b"")
    house.vhost.retained.clear("")
    assert len(house.vhost.retained) == 7


def test_what_is_cleared_leaves_nothing_behind(house: MemoryBroker) -> None:
    house.vhost.retained.erase()
    assert (len(house.vhost.retained), house.vhost.retained.bytes) == (0, 0)
    assert house.vhost.retained._root.is_bare
    house.commit()
    assert durable_entities(house) == []


# ---- Limits ----------------------------------------------------------------------------------------------------------


def test_no_more_messages_are_kept_than_there_may_be(house: MemoryBroker) -> None:
    house.vhost.retained.max_messages = 7
    assert not keep(house, "house/roof")
    assert keep(house, "house/attic", b"warm")
    assert keep(house, "house/attic", b"")
    assert keep(house, "house/roof")
    assert not keep(house, "house/attic")


def test_no_more_bytes_are_kept_than_there_may_be(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_bytes = 1200
    assert keep(broker, "a", bytes(600))
    assert not keep(broker, "b", bytes(600))
    assert not keep(broker, "a", bytes(1000))
    assert found(broker, "a") == [bytes(600)]
    assert keep(broker, "a", bytes(610))


def test_nothing_is_kept_where_nothing_may_be(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_messages = 0
    assert not keep(broker, "a")


# ---- Expiry ----------------------------------------------------------------------------------------------------------


def test_a_message_is_kept_for_as_long_as_it_asked_to_live(broker: MemoryBroker) -> None:
    keep(broker, "a", b"fleeting", expiry_s=10)
    broker.advance(9.999)
    assert found(broker, "a") == found(broker, "#") == [b"fleeting"]
    broker.advance(0.001)
    assert found(broker, "a") == found(broker, "#") == []


def test_what_expired_makes_room(broker: MemoryBroker) -> None:
    broker.vhost.retained.max_messages = 2
    keep(broker, "a", expiry_s=10)
    keep(broker, "b")
    assert not keep(broker, "c")
    broker.advance(10)
    assert keep(broker, "c")
    broker.commit()
    assert len(durable_entities(broker, "retained")) == 2


def test_what_expired_is_forgotten_though_nobody_asks_for_it(house: MemoryBroker) -> None:
    keep(house, "a", expiry_s=10)
    keep(house, "b", expiry_s=70)
    house.advance(60)
    assert len(house.vhost.retained) == 8, "the younger one is still there"
    house.advance(60)
    assert len(house.vhost.retained) == 7


def test_that_there_is_no_room_is_told_once_a_minute(house: MemoryBroker) -> None:
    told: list[Event] = []
    house.kernel.events.subscribe(told.append)
    retained = house.vhost.retained
    retained.max_messages = len(retained)
    for _ in range(3):
        assert not retained.keep(message("new"))
    assert [(event.name, event.vhost, event.details["refused"]) for event in told] == [("retained.refused", "/", 1)]
    house.advance(60)
    assert not retained.keep(message("new"))
    assert [event.details["refused"] for event in told] == [1, 4]


# ---- Restarts --------------------------------------------------------------------------------------------------------


def test_all_of_them_survive_a_crash_with_their_time(house: MemoryBroker) -> None:
    keep(house, "a", b"fleeting", expiry_s=10)
    keep(house, "garden", b"")
    house.commit()
    keep(house, "not committed")
    house.advance(9)
    started = house.crashed()
    assert len(started.vhost.retained) == 7
    assert started.vhost.retained.bytes == sum(kept.size for kept in started.vhost.retained)
    assert found(started, "+") == [b"fleeting", b"house"]
    started.advance(1)
    assert found(started, "+") == [b"house"]


def test_they_go_with_their_virtual_host(broker: MemoryBroker) -> None:
    broker.kernel.declare_vhost("other").retained.keep(message("a"))
    broker.kernel.delete_vhost("other")
    broker.commit()
    assert durable_entities(broker) == []


# ---- Compared with a dictionary --------------------------------------------------------------------------------------

STEPS: Final = st.lists(
    st.tuples(st.just("keep"), TOPICS, st.binary(max_size=3), st.none() | st.integers(1, 5))
    | st.tuples(st.just("wait"), st.integers(1, 3))
    | st.tuples(st.just("crash")),
    max_size=25,
)
ROOM: Final = 5


@settings(max_examples=examples(150), deadline=None)
@given(STEPS, st.lists(FILTERS | TOPICS, min_size=1, max_size=6))
def test_it_finds_what_a_dictionary_of_topics_would(steps: list[tuple[object, ...]], filters: list[str]) -> None:
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


# ---- What the broker tells of itself ---------------------------------------------------------------------------------


def test_a_transient_message_is_found_and_replaced_like_any_other(broker: MemoryBroker) -> None:
    for body in (b"one", b"two"):
        broker.vhost.retained.keep_transient(message("$SYS/uptime", body))
    assert found(broker, "$SYS/#") == [b"two"]


def test_a_transient_message_is_in_no_store(broker: MemoryBroker) -> None:
    broker.commit()
    lsn = broker.kernel.journal.lsn
    broker.vhost.retained.keep_transient(message("$SYS/uptime"))
    broker.vhost.retained.clear("$SYS.uptime")
    broker.vhost.retained.keep_transient(message("$SYS/uptime"))
    broker.commit()
    assert broker.kernel.journal.lsn == lsn
    assert found(broker.crashed(), "$SYS/#") == []


def test_a_transient_message_counts_for_no_limit(broker: MemoryBroker) -> None:
    retained = broker.vhost.retained
    retained.max_messages = 1
    retained.keep_transient(message("$SYS/uptime"))
    assert (len(retained), retained.bytes, retained.body_bytes) == (0, 0, 0)
    assert keep(broker, "t", b"12345")
    assert (len(retained), retained.body_bytes) == (1, 5)
    retained.clear("$SYS.uptime")
    assert (len(retained), retained.body_bytes) == (1, 5)


def test_one_that_counts_may_take_the_place_of_one_that_does_not(broker: MemoryBroker) -> None:
    retained = broker.vhost.retained
    retained.keep_transient(message("t"))
    assert keep(broker, "t", b"12345")
    assert (len(retained), retained.body_bytes) == (1, 5)
    retained.keep_transient(message("t"))
    assert (len(retained), retained.body_bytes) == (0, 0)


def test_a_key_is_looked_up_as_it_stands(house: MemoryBroker) -> None:
    kept = house.vhost.retained.get("house.attic")
    assert kept is not None
    assert kept.message.body == b"house/attic"
    assert house.vhost.retained.get("house.*") is None
    assert house.vhost.retained.get("#") is None


# ---- Deep topics, and looking in steps -------------------------------------------------------------------------------


def test_a_limit_in_bytes_counts_levels(broker: MemoryBroker) -> None:
    keep(broker, "a/b", b"x")
    shallow = broker.vhost.retained.bytes
    keep(broker, "/" * 100, b"x")
    assert broker.vhost.retained.bytes - shallow > shallow + 100 * 100


def test_a_key_of_an_earlier_version_takes_a_bounded_number_of_levels(broker: MemoryBroker) -> None:
    deep = "." * 60_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    broker.vhost.retained.keep(Message("amq.topic", deep, plain_header(Properties(delivery_mode=2)), b"deep"))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < 200_000
    retained = broker.vhost.retained
    assert [found.body for found in retained.matching(deep)] == [b"deep"]
    assert [found.body for found in retained.matching("#")] == [b"deep"]
    retained.clear(deep)
    assert retained._root.is_bare


def test_what_is_retained_during_a_walk_is_left_out(house: MemoryBroker) -> None:
    walk = house.vhost.retained.walk("house.#")
    seen = [next(walk)]
    keep(house, "house/attic", b"warm")
    keep(house, "house/roof", b"new")
    keep(house, "house/cellar", b"")
    seen += walk
    assert [message.body for message in seen if message is not None] == [b"house", b"house/cellar/wine"]


def test_a_walk_looks_at_one_level_at_a_time(house: MemoryBroker) -> None:
    assert len(list(house.vhost.retained.walk("#"))) == 10  # the root, and one for each word of the topics
