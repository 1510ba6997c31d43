"""The sink of Spark: rows are staged, published as a batch at once, and each batch only once."""

import json
from struct import pack
from typing import Any

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.changes import Enqueued, Put
from gateway.kernel.journal.records.progress import ProducerRecord
from gateway.kernel.messages.message import Properties
from gateway.management.message_checks import require_deliverable
from gateway.testing.clock import FakeClock
from gateway_amqp.properties import decode_properties, encode_properties
from tests.management.console import STAGED_LIMIT, Console
from tests.protocols.amqp.dialogue import Gateway

BASE = "/pipeline/%2F"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def console(clock: FakeClock) -> Console:
    """A console of a broker with a durable queue ``orders``."""
    console = Console(Gateway(clock=clock))
    console.put("/queues/%2F/orders", {"durable": True})
    return console


def framed(*rows: tuple[dict[str, Any] | None, bytes]) -> bytes:
    heads = [b"" if head is None else json.dumps(head).encode() for head, _ in rows]
    return b"".join(
        pack(">II", len(head), len(body)) + head + body for head, (_, body) in zip(heads, rows, strict=True)
    )


def stage(console: Console, content: bytes, attempt: str = "a", part: int = 0, user: str = "guest") -> tuple[int, Any]:
    path = f"{BASE}/stage?attempt={attempt}&part={part}"
    return console.ask("POST", path, content=content, user=user).result


def batch(*attempts: tuple[str, int, int], number: int | None = 0, **more: Any) -> dict[str, Any]:
    identity = {} if number is None else {"producer": "spark", "query": "q", "batch": number}
    return identity | {"attempts": list(attempts or [("a", 1, 1)]), "exchange": "", "routing_key": "orders"} | more


def commit(console: Console, fields: dict[str, Any], user: str = "guest") -> tuple[int, Any]:
    return console.ask("POST", f"{BASE}/commit", fields, user=user).result


def bodies(console: Console, queue: str = "orders") -> list[bytes]:
    fields = {"count": 1000, "ackmode": "ack_requeue_true", "encoding": "auto"}
    return [message["payload"].encode() for message in console.post(f"/queues/%2F/{queue}/get", fields)]


PUBLISHED = {"duplicate": False, "dropped": 0, "refused": 0}

# ---- Atomicity and duplicates ---------------------------------------------------------------------------------------


def test_staged_rows_are_not_in_queues(console: Console) -> None:
    assert stage(console, framed(({}, b"one"))) == (200, {"staged": 13, "parts": 1})
    assert bodies(console) == []


def test_a_commit_publishes_the_parts_in_order(console: Console) -> None:
    stage(console, framed(({}, b"three")), part=1)
    stage(console, framed(({}, b"one"), (None, b"two")), part=0)
    stage(console, framed(({}, b"four")), attempt="b")
    assert commit(console, batch(("a", 2, 3), ("b", 1, 1))) == (200, {"published": 4} | PUBLISHED)
    assert bodies(console) == [b"one", b"two", b"three", b"four"]


def test_an_attempt_without_a_commit_is_not_published(console: Console) -> None:
    """A task that failed or ran twice leaves an attempt that no commit names."""
    stage(console, framed(({}, b"failed")), attempt="first")
    stage(console, framed(({}, b"good")), attempt="second")
    commit(console, batch(("second", 1, 1)))
    assert bodies(console) == [b"good"]


def test_a_repeated_part_is_stored_once(console: Console) -> None:
    for _ in range(3):
        stage(console, framed(({}, b"one")))
    commit(console, batch())
    assert bodies(console) == [b"one"]


@pytest.mark.parametrize("again", [0, 1, 2])
def test_a_repeated_batch_is_a_duplicate(console: Console, again: int) -> None:
    for number in range(3):
        stage(console, framed(({}, b"%d" % number)))
        commit(console, batch(number=number))
    stage(console, framed(({}, b"again")))
    assert commit(console, batch(number=again)) == (200, {"published": 0, "duplicate": True})
    assert bodies(console) == [b"0", b"1", b"2"]


def test_a_duplicate_needs_no_staged_rows(console: Console) -> None:
    """The response to the first commit was lost, and its rows are deleted."""
    stage(console, framed(({}, b"one")))
    commit(console, batch())
    assert commit(console, batch()) == (200, {"published": 0, "duplicate": True})


def test_batches_of_another_query_are_no_duplicates(console: Console) -> None:
    for query in ("q", "other"):
        stage(console, framed(({}, b"one")))
        assert commit(console, batch() | {"query": query})[1]["published"] == 1


def test_without_an_identity_nothing_is_a_duplicate(console: Console) -> None:
    for _ in range(2):
        stage(console, framed(({}, b"one")))
        commit(console, batch(number=None))
    assert bodies(console) == [b"one", b"one"]


def test_messages_and_the_batch_record_are_stored_atomically(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power failure the batch and its record exist completely or not at all."""
    console = Console(ends_turns=True)
    store = console.gateway.store
    console.put("/queues/%2F/orders", {"durable": True})
    stage(console, framed(*[({}, b"%d" % n) for n in range(450)]))
    steps: list[Any] = []
    append = store.append
    monkeypatch.setattr(store, "append", lambda changes: (steps.append(list(changes)), append(changes))[1])
    assert commit(console, batch(("a", 1, 450)))[1]["published"] == 450
    (step,) = [step for step in steps if any(isinstance(change, Enqueued) for change in step)]
    assert sum(isinstance(change, Enqueued) for change in step) == 450
    records = [change.entity for step in steps for change in step if isinstance(change, Put)]
    assert [change.entity for change in step if isinstance(change, Put)] == records
    assert [(record.producer, record.query, record.batch) for record in records] == [("spark", "q", 0)]  # type: ignore[attr-defined]  # a ProducerRecord


def test_a_batch_is_a_duplicate_after_a_crash_too(console: Console) -> None:
    stage(console, framed(({}, b"one")))
    commit(console, batch(number=7))
    after = Console(Gateway(store=console.gateway.store.reopened()))
    assert commit(after, batch(number=7)) == (200, {"published": 0, "duplicate": True})


def test_staged_rows_survive_a_crash(console: Console) -> None:
    stage(console, framed(({}, b"one")))
    after = Console(Gateway(store=console.gateway.store.reopened()), staged=console.staged)
    assert commit(after, batch()) == (200, {"published": 1} | PUBLISHED)
    assert bodies(after) == [b"one"]


def test_a_commit_of_rows_that_are_not_staged_is_refused(console: Console) -> None:
    stage(console, framed(({}, b"one")))
    status, answer = commit(console, batch(("a", 2, 1)))
    assert (status, answer["error"], answer["attempt"]) == (409, "not_staged", "a")


def test_a_commit_is_answered_when_the_batch_is_durable(console: Console) -> None:
    stage(console, framed(({}, b"one")))
    transport = console.send("POST", f"{BASE}/commit", batch())
    for _ in range(10):
        console.clock.advance(0.01)
        console.gateway.end_turn()
    assert not transport.value()
    console.gateway.settle()
    assert transport.value()


def test_two_commits_of_one_batch_publish_it_once(console: Console) -> None:
    """The client has timed out and repeats the commit while the first is in progress."""
    stage(console, framed(*[({}, b"%d" % n) for n in range(500)]))
    transports = [console.send("POST", f"{BASE}/commit", batch(("a", 1, 500))) for _ in range(2)]
    for _ in range(50):
        console.clock.advance(0.01)
        console.gateway.settle()
    assert all(transport.value() for transport in transports)
    assert len(console.gateway.vhost.queue("orders")) == 500


# ---- Contents of rows -----------------------------------------------------------------------------------------------


def published(console: Console, head: dict[str, Any]) -> dict[str, Any]:
    stage(console, framed((head, b"x")))
    assert commit(console, batch())[0] == 200
    fields = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
    return console.post("/queues/%2F/orders/get", fields)[0]


def test_a_row_may_set_all_properties(console: Console) -> None:
    properties = {
        "content_type": "text/plain",
        "priority": 3,
        "correlation_id": "c",
        "message_id": "m",
        "timestamp": 1_700_000_000,
        "expiration": "60000",
        "delivery_mode": 1,
    }
    head = {"exchange": "amq.direct", "routing_key": "k", "properties": properties, "headers": {"a": "b"}}
    console.post("/bindings/%2F/e/amq.direct/q/orders", {"routing_key": "k"})
    message = published(console, head)
    assert (message["exchange"], message["routing_key"]) == ("amq.direct", "k")
    assert message["properties"] == properties | {"headers": {"a": "b"}}


def test_rows_are_persistent_by_default(console: Console) -> None:
    assert published(console, {})["properties"] == {"delivery_mode": 2}


def test_headers_in_json_keep_their_types(console: Console) -> None:
    written = json.dumps({"n": 5, "raw": {"$": ["bytes", "aGk="]}, "deep": [{"a": None}]})
    stage(console, framed(({"headers_json": written, "headers": {"n": "5"}}, b"x")))
    commit(console, batch())
    entry = console.gateway.vhost.queue("orders").take()
    assert entry is not None
    assert entry.message.headers == {"n": 5, "raw": b"hi", "deep": [{"a": None}]}


NO_IMPERSONATOR = "user_id is 'x', but the user is 'guest' without the tag impersonator"
TOO_LARGE = "a body of 1001 bytes is larger than 'amqp.max_message_size', 1000 bytes"

AMISS = [
    pytest.param(b"\0\0\0\2\0\0\0\1{}", "a part ends in the middle of a row", id="torn body"),
    pytest.param(b"\0\0", "a part ends in the middle of a row", id="torn lengths"),
    pytest.param(b"\0\0\0\0\0\0\0\1x", "the first row of a part has no head", id="no head"),
    pytest.param(framed(({"headers": []}, b"")), "a row cannot be published: headers must be an object", id="headers"),
    pytest.param(framed(({"routing_key": 3}, b"")), "neither the row nor the batch names an exchange", id="key"),
    pytest.param(framed(({"exchange": "none"}, b"")), "no exchange 'none' in vhost '/'", id="no exchange"),
    pytest.param(framed(({"properties": {"user_id": "x"}}, b"")), NO_IMPERSONATOR, id="user"),
    pytest.param(framed(({}, b"x" * 1001)), TOO_LARGE, id="body"),
    pytest.param(framed(({}, b"a"), ({}, b"b")), "the batch has 2 rows, but 3 were staged", id="count"),
    pytest.param(framed(({"headers_json": "{"}, b"")), None, id="headers in broken JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "reason"), AMISS)
def test_an_invalid_row_fails_the_batch(console: Console, content: bytes, reason: object) -> None:
    stage(console, framed(({}, b"good")), attempt="good")
    stage(console, content, attempt="a")
    status, answer = commit(console, batch(("good", 1, 1), ("a", 1, 1)))
    assert status in (400, 404)
    assert reason is None or answer["reason"] == reason
    assert bodies(console) == []
    assert not console.gateway.vhost.producers.has_published("spark", "q", 0)


LONG = "x" * 256

#: Messages that AMQP cannot deliver or the store cannot write.
NOBODY_CAN_BE_SENT = [
    ({"properties": {"priority": 256}}, "property 'priority' is out of range"),
    ({"properties": {"priority": "x"}}, "property 'priority' is not a whole number"),
    ({"properties": {"message_id": LONG}}, "property 'message_id' has 256 bytes; the limit is 255"),
    ({"properties": {"type": "ä" * 128}}, "property 'type' has 256 bytes; the limit is 255"),
    ({"properties": {"app_id": "\ud800"}}, "property 'app_id' contains a lone surrogate, which UTF-8 cannot encode"),
    ({"properties": {"timestamp": -1}}, "property 'timestamp' is before 1970"),
    *(
        (
            {"properties": {"expiration": text}},
            f"property 'expiration' must be milliseconds from 0 to 315360000000, not '{text}'",
        )
        for text in ("soon", "-1", "5.5", "1_0", "", "315360000001", "9" * 255)
    ),
    ({"headers": {LONG: "x"}}, "a header name has 256 bytes; the limit is 255"),
    ({"headers_json": '{"n":9223372036854775808}'}, "header 'n' is an integer of more than 64 bits"),
    ({"headers_json": '{"n":[{"m":-9223372036854775809}]}'}, "header 'm' is an integer of more than 64 bits"),
    ({"headers_json": '{"d":{"$":["decimal","1E+11"]}}'}, "header 'd' is a decimal of more than 32 bits or 255 places"),
    ({"headers_json": '{"d":{"$":["decimal","NaN"]}}'}, "header 'd' is a decimal of more than 32 bits or 255 places"),
    ({"headers_json": '{"t":{"$":["datetime",["1969-12-31T23:59:59",0]]}}'}, "header 't' is before 1970"),
    (
        {"headers_json": '{"l":' + "[" * 64 + "]" * 64 + "}"},
        "header 'l' has more than 64 levels of nested tables and lists",
    ),
    ({"headers": {"s": "\udc80"}}, "header 's' contains a lone surrogate, which UTF-8 cannot encode"),
]


@pytest.mark.parametrize(("head", "reason"), NOBODY_CAN_BE_SENT, ids=lambda value: str(value)[:40])
def test_an_undeliverable_message_is_not_published(console: Console, head: dict[str, Any], reason: str) -> None:
    stage(console, framed((head, b"")))
    assert commit(console, batch()) == (
        400,
        {"error": "bad_request", "reason": f"a row cannot be published: {reason}"},
    )
    assert bodies(console) == []


def test_a_routing_key_is_limited_to_the_length_of_a_topic() -> None:
    require_deliverable("x" * 65535, Properties())
    with pytest.raises(PreconditionFailed, match="the routing key has 65536 bytes; the limit is 65535"):
        require_deliverable("x" * 65536, Properties())


CARRIED = {
    "properties": {"message_id": "x" * 255, "timestamp": 0, "expiration": "+315360000000", "priority": 255},
    "headers_json": json.dumps(
        {
            "l" * 255: 2**63 - 1,
            "least": -(2**63),
            "deep": json.loads("[" * 63 + "]" * 63),
            "decimal": {"$": ["decimal", "-2.147483647"]},
            "time": {"$": ["datetime", ["1970-01-01T00:00:00", 0]]},
            "bytes": {"$": ["bytes", "/w=="]},
            "truth": True,
            "half": 0.5,
        }
    ),
}


def test_messages_at_the_limits_are_delivered(console: Console) -> None:
    stage(console, framed((CARRIED, b"")))
    assert commit(console, batch())[0] == 200
    entry = console.gateway.vhost.queue("orders").take()
    assert entry is not None
    assert decode_properties(encode_properties(entry.message.properties)) == entry.message.properties


NO_BATCH = [
    (
        {"producer": None},
        "'producer', 'query' and 'batch' must be two strings and a whole number from 0, or all be missing",
    ),
    ({"batch": -1}, "'producer', 'query' and 'batch' must be two strings and a whole number from 0, or all be missing"),
    ({"attempts": [["a", 1]]}, "'attempts' must be a list of [name, number of parts, number of rows]"),
    ({"attempts": [["", 1, 1]]}, "the name of an attempt must have 1 to 64 characters"),
    ({"unroutable": "ignore"}, "'unroutable' must be fail, drop or deadletter"),
    (
        {"unroutable": "deadletter"},
        "'dead_letter_exchange' must name an exchange if and only if 'unroutable' is deadletter",
    ),
    ({"exchange": 3}, "'exchange' must be a string"),
]


@pytest.mark.parametrize(("wrong", "reason"), NO_BATCH, ids=lambda value: str(value)[:20])
def test_an_invalid_commit_is_refused(console: Console, wrong: dict[str, Any], reason: str) -> None:
    status, answer = commit(console, batch() | wrong)
    assert (status, answer["reason"]) == (400, reason)


# ---- Unroutable messages --------------------------------------------------------------------------------------------


def unroutable(console: Console, **rule: Any) -> tuple[int, Any]:
    stage(console, framed(({}, b"good"), ({"routing_key": "absent"}, b"lost")))
    return commit(console, batch(("a", 1, 2)) | rule)


def test_an_unroutable_message_fails_the_whole_batch(console: Console) -> None:
    status, answer = unroutable(console)
    reason = "a message to exchange '' with routing key 'absent' reaches no queue"
    assert (status, answer) == (409, {"error": "unroutable", "reason": reason})
    assert bodies(console) == []


def test_a_failed_batch_may_be_repeated(console: Console) -> None:
    unroutable(console)
    console.put("/queues/%2F/absent", {"durable": True})
    assert commit(console, batch(("a", 1, 2)))[1]["published"] == 2


def test_unroutable_messages_may_be_dropped(console: Console) -> None:
    status, answer = unroutable(console, unroutable="drop")
    assert (status, answer) == (200, {"published": 1, "duplicate": False, "dropped": 1, "refused": 0})


def test_unroutable_messages_may_be_dead_lettered(console: Console) -> None:
    console.put("/exchanges/%2F/dead", {"type": "fanout"})
    console.put("/queues/%2F/graveyard", {"durable": True})
    console.post("/bindings/%2F/e/dead/q/graveyard", {})
    assert unroutable(console, unroutable="deadletter", dead_letter_exchange="dead")[1]["published"] == 2
    assert (bodies(console), bodies(console, "graveyard")) == ([b"good"], [b"lost"])


def test_an_unroutable_dead_letter_fails_the_batch(console: Console) -> None:
    console.put("/exchanges/%2F/dead", {"type": "fanout"})
    assert unroutable(console, unroutable="deadletter", dead_letter_exchange="dead")[0] == 409
    assert bodies(console) == []


def test_messages_refused_by_a_full_queue_are_counted(console: Console) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    console.put("/queues/%2F/small", {"durable": True, "arguments": arguments})
    stage(console, framed(*[({}, b"x")] * 3))
    assert commit(console, batch(("a", 1, 3)) | {"routing_key": "small"})[1]["refused"] == 2


# ---- Permissions ----------------------------------------------------------------------------------------------------


def test_publishing_needs_the_write_permission(console: Console) -> None:
    console.gateway.add_user("bob", "bob", "/", ("", "^amq\\.direct$", ""))
    stage(console, framed(({}, b"x")), user="bob")
    status, answer = commit(console, batch(), user="bob")
    reason = "user 'bob' lacks the permission to write on exchange 'amq.default' in vhost '/'"
    assert (status, answer["reason"]) == (403, reason)


def test_rows_staged_by_another_user_cannot_be_committed(console: Console) -> None:
    console.gateway.add_user("bob", "bob", "/", (".*", ".*", ".*"))
    stage(console, framed(({}, b"x")))
    assert commit(console, batch(), user="bob")[1]["error"] == "not_staged"


# ---- Limits ---------------------------------------------------------------------------------------------------------


def test_the_size_of_an_attempt_is_limited(console: Console) -> None:
    status, answer = stage(console, b"x" * (STAGED_LIMIT + 1))
    reason = (
        f"an attempt is larger than {STAGED_LIMIT} bytes, the setting 'pipeline.staged_size'; "
        "raise it or write less at a time"
    )
    assert (status, answer["reason"]) == (413, reason)


def test_the_size_of_a_batch_in_a_cluster_is_limited(clock: FakeClock) -> None:
    """There it is published in one step of the store."""
    console = Console(Gateway(clock=clock), batch_limit=10_000)
    console.put("/queues/%2F/orders", {"durable": True})
    content = framed(*[({}, b"x" * 900)] * 6)
    for attempt in "ab":
        assert stage(console, content, attempt=attempt)[0] == 200
    status, answer = commit(console, batch(("a", 1, 6), ("b", 1, 6)))
    reason = (
        "a batch is larger than 10000 bytes, the setting 'pipeline.batch_size'; "
        "write less at a time (option 'maxOffsetsPerTrigger' of the source), or raise it"
    )
    assert (status, answer["error"], answer["reason"]) == (413, "too_large", reason)
    assert bodies(console) == []


def test_staging_without_space_is_answered_with_503(console: Console) -> None:
    for attempt in range(STAGED_LIMIT // 5000):
        assert stage(console, b"x" * 5000, attempt=str(attempt))[0] == 200
    assert stage(console, b"x", attempt="late")[0] == 503
    console.ask("POST", f"{BASE}/discard", {"attempts": ["0"]})
    assert stage(console, b"x", attempt="late")[0] == 200


def test_publishing_a_batch_frees_its_space(console: Console) -> None:
    staging = console.pipeline.staging
    stage(console, framed(({}, b"x")))
    commit(console, batch())
    assert (len(staging), staging.size) == (0, 0)


def test_staged_rows_expire(console: Console, clock: FakeClock) -> None:
    stage(console, b"x" * 10, attempt="old")
    clock.advance(40)
    stage(console, b"x" * 10, attempt="young")
    clock.advance(21)
    assert console.pipeline.staging.size == 10
    clock.advance(60)
    assert console.pipeline.staging.size == 0


def test_a_further_part_renews_the_expiry_of_an_attempt(console: Console, clock: FakeClock) -> None:
    for part in range(3):
        stage(console, b"x", part=part)
        clock.advance(40)
    assert console.pipeline.staging.size == 3


# ---- Producer records -----------------------------------------------------------------------------------------------


def test_records_of_inactive_queries_expire(console: Console, clock: FakeClock) -> None:
    for number, query in enumerate(("old", "new")):
        clock.advance(61 * number)
        stage(console, framed(({}, b"x")))
        commit(console, batch() | {"query": query})
    assert len(console.gateway.vhost.producers) == 1
    assert not console.gateway.vhost.producers.has_published("spark", "old", 0)


def test_the_oldest_record_expires_first_after_a_restart(clock: FakeClock) -> None:
    producers = Gateway(clock=clock).vhost.producers
    now_ms = clock.wall_ms()
    for query, age_ms in (("b", 50_000), ("a", 70_000), ("c", 10_000)):
        producers.install(ProducerRecord("/", "spark", query, 3, now_ms - age_ms))
    producers.settle()
    producers.forget(60_000)
    assert [producers.has_published("spark", query, 3) for query in "abc"] == [False, True, True]


def test_deleting_a_virtual_host_deletes_its_producer_records(console: Console) -> None:
    console.put("/vhosts/other", {})
    console.put("/permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    console.put("/queues/other/orders", {"durable": True})
    console.ask("POST", "/pipeline/other/stage?attempt=a&part=0", content=framed(({}, b"x")))
    assert console.ask("POST", "/pipeline/other/commit", batch()).status == 200
    console.delete("/vhosts/other")
    after = Gateway(store=console.gateway.store.reopened())
    assert after.broker.declare_vhost("other").producers.has_published("spark", "q", 0) is False
