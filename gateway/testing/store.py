"""The contract of a store, as a check for storage engines.

The author of an engine writes a ``StorePlace``, which locates the engine's data and drives the engine, and calls
``check_store(MyPlace)`` from a test. The first broken promise raises an ``AssertionError`` that describes it.
``STORE_CHECKS`` holds the single checks, to make one test of each; each is called with an empty place.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from gateway.kernel.journal.changes import (
    MESSAGE,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    SetAside,
    Stored,
)
from gateway.kernel.journal.records.topology import BindingRecord, ExchangeRecord, ParameterRecord
from gateway.kernel.messages.message import Value
from gateway.testing.store_session import (
    StorePlace,
    StoreSession,
    content_of,
    entities_in,
    message_with,
    places_in,
    queue_record,
    vhost_record,
)
from gateway.testing.store_streams import STREAM_CHECKS

__all__ = ["STORE_CHECKS", "StorePlace", "check_store"]


def check_store(new_place: Callable[[], StorePlace]) -> None:
    """Check that an engine keeps every promise of ``gateway.kernel.journal.store.Store``.

    :param new_place: creates an empty place; called once for each check.
    :raises AssertionError: for the first broken promise.
    """
    for check in STORE_CHECKS:
        place = new_place()
        try:
            check(place)
        finally:
            place.close()


# ---- The promises -----------------------------------------------------------------------------------------------


def _an_empty_store_holds_nothing(place: StorePlace) -> None:
    session = StoreSession(place)
    assert session.found == [], f"a new store recovers {session.found}"
    assert session.store.highest_ids() == (0, 0), f"a new store has the highest ids {session.store.highest_ids()}"
    assert session.store.messages([]) == [], "the store returns messages for an empty list of ids"
    assert session.store.messages([1, 2]) == [None, None], "a new store returns contents"


def _positions_count_appends_and_all_become_durable(place: StorePlace) -> None:
    session = StoreSession(place)
    for message_id in range(1, 30):
        session.append(Stored(message_with(message_id)), Enqueued(1, message_id, message_id, 0))
    session.append()
    session.settle()
    session.append(Dequeued(1))
    session.settle()
    assert session.watermark == session.appended == 31


def _reported_changes_survive_a_crash(place: StorePlace) -> None:
    session = StoreSession(place)
    message = message_with(7, b"\x00\xff" * 500, "ex\u00e4mple", "a.b\u20ac")
    session.append(Put(queue_record(3)), Stored(message), Enqueued(3, 12, 7, 1_700_000_000_123, 2))
    session.crash_settled()
    assert entities_in(session.found) == [queue_record(3)], f"the queue was recovered as {entities_in(session.found)}"
    assert places_in(session.found) == [(12, 3, 7, 1_700_000_000_123, 2)], f"recovered {places_in(session.found)}"
    assert session.content(7) == content_of(message), "the content differs from what was stored"
    assert session.store.highest_ids() == (12, 7), f"the highest ids are {session.store.highest_ids()}, not (12, 7)"
    assert session.store.record_count() == 2, f"there are {session.store.record_count()} records to recover, not 2"


def _a_queue_position_keeps_all_its_fields(place: StorePlace) -> None:
    enqueued = Enqueued(3, 12, 7, 1_700_000_000_123, 2, 1000, 255, 1_700_000_060_000, 1_800_000_000_000)
    session = StoreSession(place)
    session.append(Put(queue_record(3)), Stored(message_with(7)), enqueued)
    session.crash_settled()
    (found,) = (change for change in session.found if isinstance(change, Enqueued))
    differing = [
        name for name in dir(enqueued) if not name.startswith("_") and getattr(found, name) != getattr(enqueued, name)
    ]
    assert not differing, f"a queue entry was recovered with another {', '.join(differing)}"


def _messages_delayed_by_an_exchange_are_stored_like_those_of_queues(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(ExchangeRecord("/", "later", "x-delayed-message", False, False, {}, queue_id=4)))
    session.append(Stored(message_with(1)), Enqueued(4, 1, 1, 0, due_at_ms=1_700_000_000_000))
    session.crash_settled()
    assert places_in(session.found) == [(1, 4, 1, 0, 0)], f"recovered {places_in(session.found)}"
    session.append(Removed("exchange", ("/", "later")))
    session.crash_settled()
    assert places_in(session.found) == [], "messages outlived the exchange that held them back"
    assert session.content(1) is None, "the content of a message was kept after its last holder was removed"


def _recovery_yields_entities_first_and_positions_in_order(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 20, 1, 0))
    session.append(Put(queue_record(2)), Stored(message_with(2)), Enqueued(2, 300, 2, 0), Enqueued(1, 21, 1, 0))
    session.append(Put(queue_record(3)), Enqueued(3, 19, 2, 0), Put(vhost_record("/")))
    session.crash_settled()
    kinds = [type(change) for change in session.found]
    assert kinds == [Put] * 4 + [Enqueued] * 4, f"recovery must yield every Put, then every Enqueued; it gave {kinds}"
    positions = [place[0] for place in places_in(session.found)]
    assert positions == [19, 20, 21, 300], f"positions must rise in recovery: {positions}"


def _entities_are_replaced_and_removed_by_key(place: StorePlace) -> None:
    session = StoreSession(place)
    arguments: dict[str, Value] = {"a": 1, "b": [True, {"c": None}]}
    reordered: dict[str, Value] = {"b": [True, {"c": None}], "a": 1}
    long_name = "n" * 255
    kept = BindingRecord("/", long_name, "queue", long_name, "\u20ac" * 80, {"x-match": "all"})
    session.append(Put(vhost_record("a", "first")), Put(vhost_record("b")), Put(kept))
    session.append(Put(BindingRecord("/", "x", "queue", "q", "key", arguments)))
    session.append(Put(vhost_record("a", "second")), Removed("vhost", ("b",)))
    session.append(Removed("binding", ("/", "x", "queue", "q", "key", reordered)), Removed("vhost", ("never there",)))
    session.crash_settled()
    found = entities_in(session.found)
    assert len(found) == 2, f"2 entities must be recovered, not {len(found)}"
    assert vhost_record("a", "second") in found, "an entity that was put again did not come back as it was put last"
    assert kept in found, "an entity with long names did not come back"


def _every_kind_of_value_comes_back(place: StorePlace) -> None:
    session = StoreSession(place)
    value: Value = {
        "nothing": None, "yes": True, "whole": -(2**70), "part": 0.1, "huge": float("inf"), "text": "\u20ac\x00",
        "bytes": b"\x00\xff", "exact": Decimal("1.10"), "time": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "list": [1, [2.0, "3"]], "$": {"$": ["bytes", "AA=="]},
    }  # fmt: skip
    session.append(Put(ParameterRecord("/", "shovel", "s", value)))
    session.crash_settled()
    found = entities_in(session.found)[0]
    assert isinstance(found, ParameterRecord) and found.value == value, f"{value!r} was recovered as {found!r}"  # noqa: PT018


def _quarantined_records_are_reported_at_each_start_and_keep_their_messages(place: StorePlace) -> None:
    session = StoreSession(place)
    aside = SetAside("queue", ("/", "q1"), "spoilt", 1)
    session.append(Put(queue_record(1)), Put(queue_record(2)), Stored(message_with(1)), Enqueued(1, 1, 1, 0))
    session.append(Stored(message_with(2)), Enqueued(2, 2, 2, 0))
    session.settle()
    session.append(aside, SetAside(MESSAGE, (2,), "torn"), SetAside("queue", ("/", "none"), "never there"))
    for _ in range(2):
        session.crash_settled()
        reported = [change for change in session.found if isinstance(change, SetAside)]
        assert sorted(each.kind for each in reported) == [MESSAGE, "queue"], (
            f"set aside, but recovery reports {reported}"
        )
        assert aside in reported, f"{aside} was set aside, but recovery reports {reported}"
        assert entities_in(session.found) == [queue_record(2)], "what is set aside was recovered"
        assert session.content(1) is not None, "the message of a queue that is set aside was lost"
        assert session.content(2) is None, "a content that is set aside is still found"


def _discarded_messages_are_not_recovered(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Put(queue_record(2)))
    for number in range(1, 9):
        session.append(Stored(message_with(number)), Enqueued(1, number, number, 0))
    session.append(Enqueued(2, 9, 8, 0))
    session.settle()
    session.append(*map(Dequeued, (3, 1, 2)), *map(Discarded, (1, 3, 2)))
    session.append(Dequeued(8))
    session.crash_settled()
    positions = [place[0] for place in places_in(session.found)]
    assert positions == [4, 5, 6, 7, 9], f"4, 5, 6, 7 and 9 were left; recovered {positions}"
    assert session.content(2) is None, "the content of a discarded message was recovered"
    assert session.content(8) is not None, "the content of a message in another queue was lost"


def _messages_added_and_removed_between_commits_leave_nothing(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Stored(message_with(1)), Enqueued(1, 1, 1, 0))
    session.settle()
    session.append(Stored(message_with(2)), Enqueued(1, 2, 2, 0), Dequeued(2), Discarded(2))
    session.append(Stored(message_with(3)), Enqueued(1, 3, 3, 0))
    session.append(Dequeued(3), Discarded(3))
    session.append(Enqueued(1, 1, 1, 0, delivery_count=1), Stored(message_with(4)), Enqueued(1, 4, 4, 0))
    session.append(Dequeued(1), Discarded(1))
    session.append(Enqueued(1, 4, 4, 0, delivery_count=5))
    session.crash_settled()
    assert places_in(session.found) == [(4, 1, 4, 0, 5)], f"one message was left; recovered {places_in(session.found)}"
    assert session.store.messages([1, 2, 3]) == [None] * 3, "contents of discarded messages were recovered"


def _an_append_survives_whole_or_not_at_all(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(*(Put(queue_record(number)) for number in range(1, 4)))
    session.settle()
    for step in range(60):
        changes: list[Change] = [Stored(message_with(step + 1, bytes(2000)))]
        changes.extend(Enqueued(queue, 3 * step + queue, step + 1, 0) for queue in range(1, 4))
        session.append(*changes, Put(vhost_record(f"step {step}")))
    reported = session.watermark
    session.crash()
    steps = len(entities_in(session.found)) - 3
    assert steps + 1 >= reported, f"{reported} appends were reported durable, {steps + 1} survived"
    positions = [place[0] for place in places_in(session.found)]
    assert positions == list(range(1, 3 * steps + 1)), f"{steps} appends survived, but the positions are {positions}"
    contents = session.store.messages(range(1, 61))
    assert [content is not None for content in contents] == [number < steps for number in range(60)], (
        f"{steps} appends survived, but contents of others do, or of some of these do not"
    )


def _applying_twice_is_the_same_as_once(place: StorePlace) -> None:
    session = StoreSession(place)
    changes: list[Change] = [Put(queue_record(1)), Stored(message_with(1)), Stored(message_with(2))]
    changes += [Enqueued(1, 1, 1, 0), Enqueued(1, 2, 2, 0), Dequeued(1), Discarded(1), Removed("vhost", ("/",))]
    for _ in range(2):
        session.append(*changes)
        session.append(*changes)
        session.settle()
    session.crash()
    assert places_in(session.found) == [(2, 1, 2, 0, 0)], f"recovered {places_in(session.found)}"
    assert session.content(1) is None, "a message discarded twice is still stored"
    assert session.content(2) == content_of(message_with(2)), "a message stored twice is not what was stored"


def _contents_are_readable_from_append_until_discarded(place: StorePlace) -> None:
    session = StoreSession(place)
    bodies = {1: b"", 2: b"x" * 3_000_000, 3: b"c"}
    for number, body in bodies.items():
        session.append(Stored(message_with(number, body)))
    expected = [content_of(message_with(number, bodies[number])) for number in (3, 1, 2, 1)]
    for moment in ("just staged", "durable"):
        contents = session.store.messages([3, 1, 99, 2, 1])
        assert contents == [*expected[:2], None, *expected[2:]], f"contents differ when they are {moment}"
        session.settle()
    session.append(Discarded(2))
    assert session.content(2) is None, "content is still read after it was discarded"
    session.settle()
    assert session.store.messages([2, 3]) == [None, expected[0]], "a discarded content is there, or another one gone"


def _contents_are_those_at_the_time_of_the_append(place: StorePlace) -> None:
    session = StoreSession(place)
    message = message_with(5)
    session.append(Put(queue_record(1)), Stored(message), Enqueued(1, 1, 5, 0))
    message.id = 0  # the kernel resets the id when the last queue drops the message
    session.crash_settled()
    assert session.content(5) == content_of(message_with(5)), "a message whose id changed after the append was lost"


def _spilled_contents_end_with_the_run(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(
        Stored(message_with(1)), Stored(message_with(2), is_spilled=True), Stored(message_with(3), is_spilled=True)
    )
    assert session.content(2) == content_of(message_with(2)), "spilled content cannot be read while staged"
    session.settle()
    assert session.content(3) == content_of(message_with(3)), "spilled content cannot be read once written"
    session.append(Discarded(3, is_spilled=True))
    session.settle()
    assert session.content(3) is None, "spilled content is still there after it was discarded"
    session.crash()
    assert session.store.messages([2, 3]) == [None, None], "spilled content survived the run"
    assert session.content(1) is not None, "content that was not spilled was lost"


def _messages_of_a_deleted_queue_are_not_recovered(place: StorePlace) -> None:
    session = StoreSession(place)
    session.append(Put(queue_record(1)), Put(queue_record(2)), Stored(message_with(1)), Stored(message_with(2)))
    session.append(Enqueued(1, 1, 1, 0), Enqueued(2, 2, 1, 0), Enqueued(1, 3, 2, 0))
    session.append(Removed("queue", ("/", "q1")))
    session.crash_settled()
    assert places_in(session.found) == [(2, 2, 1, 0, 0)], f"one queue is left, but recovered {places_in(session.found)}"
    session.append(Put(queue_record(1)))
    session.crash_settled()
    assert len(places_in(session.found)) == 1, "messages of a deleted queue were recovered for a queue with the same id"
    assert session.store.messages([2]) == [None], "the content of a message that no queue holds was kept for ever"
    assert session.content(1) is not None, "the content of a message that a queue holds was removed"


def _closing_makes_everything_durable(place: StorePlace) -> None:
    session = StoreSession(place)
    for number in range(1, 200):
        session.append(Put(vhost_record(str(number))))
    session.store.close()
    assert session.watermark == 199, f"199 appends, then close: reported up to {session.watermark} when it returned"
    session.open()
    assert len(session.found) == 199, f"199 entities were put before close, {len(session.found)} were recovered"
    session.append(Put(vhost_record("200")))
    session.settle()


STORE_CHECKS: Final[tuple[Callable[[StorePlace], None], ...]] = (
    _an_empty_store_holds_nothing,
    _positions_count_appends_and_all_become_durable,
    _reported_changes_survive_a_crash,
    _a_queue_position_keeps_all_its_fields,
    _messages_delayed_by_an_exchange_are_stored_like_those_of_queues,
    _recovery_yields_entities_first_and_positions_in_order,
    _entities_are_replaced_and_removed_by_key,
    _every_kind_of_value_comes_back,
    _quarantined_records_are_reported_at_each_start_and_keep_their_messages,
    _discarded_messages_are_not_recovered,
    _messages_added_and_removed_between_commits_leave_nothing,
    _an_append_survives_whole_or_not_at_all,
    _applying_twice_is_the_same_as_once,
    _contents_are_readable_from_append_until_discarded,
    _contents_are_those_at_the_time_of_the_append,
    _spilled_contents_end_with_the_run,
    _messages_of_a_deleted_queue_are_not_recovered,
    _closing_makes_everything_durable,
    *STREAM_CHECKS,
)
"""All single checks; each is called with an empty place."""
