"""The endpoints for Spark: streams, offsets by time and by size, reading as Arrow, progress."""

import pyarrow as pa
import pytest

from gateway.kernel.streams.stream import Stream
from gateway.testing.clock import FakeClock
from tests.management.console import Answer, Console, parsed
from tests.protocols.amqp.dialogue import Gateway

START_MS = 1_700_000_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def console(clock: FakeClock) -> Console:
    """A console of a broker with a stream ``orders`` of ten messages, a second apart."""
    console = Console(Gateway(clock=clock))
    declare(console, "orders")
    for number in range(10):
        publish(console, "orders", f"order {number}")
        clock.advance(1)
    return console


def declare(console: Console, name: str, **arguments: object) -> Stream:
    table = {"x-queue-type": "stream"} | arguments
    console.put(f"/queues/%2F/{name}", {"durable": True, "arguments": table})
    stream = console.gateway.vhost.queue(name)
    assert isinstance(stream, Stream)
    return stream


def publish(console: Console, queue: str, body: str) -> None:
    fields = {"properties": {}, "routing_key": queue, "payload": body, "payload_encoding": "string"}
    console.post("/exchanges/%2F/amq.default/publish", fields)


def incarnation_of(console: Console) -> str:
    stream = console.gateway.vhost.queue("orders")
    assert isinstance(stream, Stream)
    return stream.incarnation


def rows(answer: Answer) -> list[dict]:
    assert answer.status == 200, answer
    return pa.ipc.open_stream(answer.content).read_all().to_pylist()


# ---- Streams --------------------------------------------------------------------------------------------------------


def test_a_stream_is_its_own_only_partition(console: Console) -> None:
    (queue,) = console.get('/pipeline/%2F/streams?names=["orders"]'.replace('"', "%22"))["queues"]
    size = console.gateway.vhost.queue("orders").size_bytes
    incarnation = incarnation_of(console)
    part = {"queue": "orders", "incarnation": incarnation, "first": 0, "next": 10, "bytes": size}
    assert queue == {"queue": "orders", "partitions": {"0": part}}


def test_a_super_stream_has_its_partitions_in_order(console: Console) -> None:
    console.put("/stream/super-streams/%2F/sales", {"partitions": 3})
    (queue,) = console.get("/pipeline/%2F/streams?names=%5B%22sales%22%5D")["queues"]
    assert [part["queue"] for part in queue["partitions"].values()] == ["sales-0", "sales-1", "sales-2"]


def test_without_names_all_streams_and_partitions_are_listed(console: Console) -> None:
    console.put("/stream/super-streams/%2F/sales", {"partitions": 2})
    found = console.get("/pipeline/%2F/streams")["queues"]
    listed = [(queue["queue"], len(queue["partitions"])) for queue in found]
    assert listed == [("orders", 1), ("sales", 2), ("sales-0", 1), ("sales-1", 1)]


def test_streams_without_the_read_permission_are_not_listed(console: Console) -> None:
    declare(console, "secret")
    console.put("/stream/super-streams/%2F/sales", {"partitions": 2})
    console.gateway.add_user("bob", "bob", "/", ("", "", "^(orders|sales-1)$"))
    answer = console.ask("GET", "/pipeline/%2F/streams", user="bob")
    assert [queue["queue"] for queue in answer.json["queues"]] == ["orders", "sales-1"]


NUMBER = "a whole number from 0 to 2^63 - 1"
REFUSED = [
    pytest.param("streams?names=%5B%22none%22%5D", 404, "no queue 'none' in vhost '/'", id="no such queue"),
    pytest.param("streams?names=none", 400, "'names' must be a JSON list of names", id="names are no list"),
    # A pattern could take hours and delay all other clients.
    pytest.param("streams?pattern=(a%2B)%2B!", 400, "'pattern' is not supported: .*", id="a pattern"),
    pytest.param("offset?queue=orders&timestamp=x", 400, f"'timestamp' must be {NUMBER}, not 'x'", id="time"),
    pytest.param(
        f"offset?queue=orders&timestamp={'9' * 5000}", 400, f"'timestamp' must be {NUMBER}, not '{'9' * 40}'", id="long"
    ),
    pytest.param(f"read?queue=orders&from=0&to={2**63}", 400, f"'to' must be {NUMBER}, not '{2**63}'", id="large"),
    pytest.param("read?queue=classic&from=0&to=1", 400, "queue 'classic' in vhost '/' is not a stream", id="no stream"),
    pytest.param("read?queue=orders&from=0", 400, f"'to' must be {NUMBER}, not ''", id="no end"),
    pytest.param("read?queue=orders&from=10&to=12", 416, "stream 'orders' ends at 10, before 10", id="not there yet"),
]


@pytest.mark.parametrize(("path", "status", "reason"), REFUSED)
def test_an_invalid_query_is_refused(console: Console, path: str, status: int, reason: str) -> None:
    console.put("/queues/%2F/classic", {"durable": True})
    answer = console.ask("GET", f"/pipeline/%2F/{path}")
    assert answer.status == status
    assert answer.json["reason"] == reason or reason.endswith(".*")


# ---- Permissions ----------------------------------------------------------------------------------------------------


def test_no_user_tag_is_needed(console: Console) -> None:
    console.gateway.add_user("bob", "bob", "/", ("", "", "orders"))
    assert console.ask("GET", "/pipeline/%2F/offset?queue=orders&timestamp=0", user="bob").result == (
        200,
        {"offset": 0},
    )


def test_reading_needs_the_read_permission(console: Console) -> None:
    console.gateway.add_user("bob", "bob", "/", (".*", ".*", "other"))
    answer = console.ask("GET", "/pipeline/%2F/read?queue=orders&from=0&to=1", user="bob")
    reason = "user 'bob' lacks the permission to read on queue 'orders' in vhost '/'"
    assert answer.result == (403, {"error": "access_refused", "reason": reason})


def test_an_unknown_user_is_refused(console: Console) -> None:
    assert console.ask("GET", "/pipeline/%2F/streams", user="absent").status == 401


def test_a_virtual_host_needs_permissions(console: Console) -> None:
    console.put("/vhosts/other", {})
    console.gateway.add_user("bob", "bob", "/", (".*", ".*", ".*"))
    assert console.ask("GET", "/pipeline/other/streams", user="bob").status == 401


# ---- Offsets --------------------------------------------------------------------------------------------------------

TIMES = [(0, 0), (-1, 0), (1, 1), (999, 1), (1000, 1), (9000, 9), (9001, 10), (10**9, 10)]


@pytest.mark.parametrize(("after_ms", "expected"), TIMES)
def test_the_offset_of_a_time_is_the_first_message_at_or_after_it(
    console: Console, after_ms: int, expected: int
) -> None:
    first_ms = (
        rows(console.ask("GET", "/pipeline/%2F/read?queue=orders&from=0&to=1"))[0]["timestamp"].timestamp() * 1000
    )
    answer = console.get(f"/pipeline/%2F/offset?queue=orders&timestamp={int(first_ms) + after_ms}")
    assert answer == {"offset": expected}


def test_an_offset_by_size_uses_the_mean_message_size(console: Console) -> None:
    mean = console.gateway.vhost.queue("orders").size_bytes // 10
    assert console.get(f"/pipeline/%2F/offset?queue=orders&offset=2&bytes={mean * 3}") == {"offset": 5}
    assert console.get(f"/pipeline/%2F/offset?queue=orders&offset=2&bytes={mean * 300}") == {"offset": 10}


# ---- Reading --------------------------------------------------------------------------------------------------------


def test_messages_are_sent_as_arrow(console: Console) -> None:
    answer = console.ask("GET", "/pipeline/%2F/read?queue=orders&from=3&to=6")
    assert [(row["offset"], row["body"]) for row in rows(answer)] == [(n, f"order {n}".encode()) for n in (3, 4, 5)]
    assert answer.headers["x-first-offset"] == "3"
    assert answer.headers["x-next-offset"] == "6"


def test_a_response_ends_at_the_end_of_the_stream(console: Console) -> None:
    answer = console.ask("GET", "/pipeline/%2F/read?queue=orders&from=8&to=100")
    assert [row["offset"] for row in rows(answer)] == [8, 9]
    assert answer.headers["x-next-offset"] == "10"


def test_an_offset_deleted_by_retention_is_answered_with_410(console: Console) -> None:
    stream = console.gateway.vhost.queue("orders")
    assert isinstance(stream, Stream)
    stream.seal()
    console.gateway.settle()
    stream.truncate(10)
    console.gateway.settle()
    answer = console.ask("GET", "/pipeline/%2F/read?queue=orders&from=3&to=6")
    reason = "message 3 of stream 'orders' was deleted by retention; the first one is 10"
    assert answer.result == (410, {"error": "gone", "reason": reason, "first": 10})


def test_a_recreated_stream_has_another_incarnation_which_reads_may_require(console: Console) -> None:
    first = incarnation_of(console)
    assert rows(console.ask("GET", f"/pipeline/%2F/read?queue=orders&from=3&to=6&incarnation={first}"))
    console.delete("/queues/%2F/orders")
    console.put("/queues/%2F/orders", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    second = incarnation_of(console)
    answer = console.ask("GET", f"/pipeline/%2F/read?queue=orders&from=3&to=6&incarnation={first}")
    reason = "stream 'orders' was deleted and declared again; its earlier messages are gone"
    assert answer.result == (410, {"error": "recreated", "reason": reason, "incarnation": second})
    assert second != first


def test_progress_in_a_recreated_stream_has_no_lag(console: Console) -> None:
    offset = {"next": 4, "incarnation": incarnation_of(console)}
    console.put("/pipeline/%2F/progress/job", {"offsets": {"orders": {"0": offset}}})
    assert console.get("/pipeline/%2F/progress")[0]["partitions"][0]["lag"] == 6
    console.put("/pipeline/%2F/progress/job", {"offsets": {"orders": {"0": offset | {"incarnation": "0-0"}}}})
    assert console.get("/pipeline/%2F/progress")[0]["partitions"][0]["lag"] is None


def test_a_failure_of_the_worker_is_answered_with_503(console: Console) -> None:
    console.worker.error = "it fell over"
    answer = console.ask("GET", "/pipeline/%2F/read?queue=orders&from=3&to=6")
    assert answer.result == (
        503,
        {"error": "not_now", "reason": "the messages cannot be encoded: it fell over"},
    )


def test_a_head_request_is_answered_without_messages(console: Console) -> None:
    answer = console.ask("HEAD", "/pipeline/%2F/read?queue=orders&from=3&to=6")
    assert (answer.status, answer.content) == (200, b"")


def test_reads_above_the_limit_wait_for_a_slot(console: Console) -> None:
    """The limit is two; a disconnect and an error free a slot."""
    first, second, third = (
        console.send("GET", f"/pipeline/%2F/read?queue=orders&from={n}&to={n + 1}") for n in range(3)
    )
    assert console.worker.requests == 2
    first.hang_up()
    assert console.worker.requests == 3
    for _ in range(3):
        console.clock.advance(0.01)
    assert not first.value()
    assert [parsed(each.value()).status for each in (second, third)] == [200, 200]


def test_a_waiting_read_that_is_cancelled_takes_no_slot(console: Console) -> None:
    transports = [console.send("GET", f"/pipeline/%2F/read?queue=orders&from={n}&to={n + 1}") for n in range(4)]
    transports[2].hang_up()
    transports[0].hang_up()
    for _ in range(3):
        console.clock.advance(0.01)
    assert console.worker.requests == 3
    assert parsed(transports[3].value()).status == 200


def test_errors_free_their_slots(console: Console) -> None:
    for _ in range(5):
        assert console.ask("GET", "/pipeline/%2F/read?queue=orders&from=10&to=11").status == 416
    assert console.ask("GET", "/pipeline/%2F/read?queue=orders&from=1&to=2").status == 200


# ---- Progress -------------------------------------------------------------------------------------------------------


def test_progress_is_shown_as_lag(console: Console) -> None:
    console.put("/pipeline/%2F/progress/job", {"offsets": {"orders": {"0": 4}}})
    (shown,) = console.get("/pipeline/%2F/progress")
    assert (shown["consumer"], shown["user"]) == ("job", "guest")
    assert shown["partitions"] == [{"queue": "orders", "partition": 0, "offset": 4, "lag": 6}]


def test_progress_in_a_partition_is_shown_as_lag(console: Console) -> None:
    console.put("/stream/super-streams/%2F/sales", {"partitions": 2})
    publish(console, "sales-1", "x")
    console.put("/pipeline/%2F/progress/job", {"offsets": {"sales": {"0": 0, "1": 0}}})
    (shown,) = console.get("/pipeline/%2F/progress")
    assert [part["lag"] for part in shown["partitions"]] == [0, 1]


def test_the_lag_in_a_deleted_stream_is_null(console: Console) -> None:
    console.put("/pipeline/%2F/progress/job", {"offsets": {"other": {"0": 4}}})
    assert console.get("/pipeline/%2F/progress")[0]["partitions"][0]["lag"] is None


def test_progress_can_be_deleted(console: Console) -> None:
    console.put("/pipeline/%2F/progress/job", {"offsets": {}})
    console.delete("/pipeline/%2F/progress/job")
    assert console.get("/pipeline/%2F/progress") == []
    assert console.ask("DELETE", "/pipeline/%2F/progress/job").status == 404


@pytest.mark.parametrize(
    "offsets",
    [None, [], {"q": 1}, {"q": {"x": 1}}, {"q": {"0": "1"}}, {"q": {"9" * 5000: 1}}, {"q": {"0": 2**64}}],
    ids=lambda value: str(value)[:30],
)
def test_invalid_progress_is_refused(console: Console, offsets: object) -> None:
    assert console.ask("PUT", "/pipeline/%2F/progress/job", {"offsets": offsets}).status == 400
