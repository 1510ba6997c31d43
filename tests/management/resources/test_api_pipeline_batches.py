"""Batches of the sink that are published in slices: committed by one record, continued after a crash where it was."""

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from gateway.kernel.alarms import Resource
from gateway.kernel.backlog.ready import Ready
from gateway.kernel.journal.changes import Enqueued, Put
from gateway.kernel.journal.journal import Journal
from gateway.kernel.journal.records.batches import BatchPositionRecord, BatchRecord
from gateway.kernel.vhosts.run_publishing import RunPublishing
from gateway.management.pipeline.staging import Staging
from gateway.testing.clock import FakeClock
from tests.management.console import Console, is_complete, parsed
from tests.protocols.amqp.dialogue import Gateway

BASE = "/pipeline/%2F"

#: Rows of each of two parts: together larger than what is published at once.
ROWS = 1200
BODIES = [b"%030d" % number for number in range(2 * ROWS)]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def console(clock: FakeClock) -> Console:
    """A console of a broker with a durable queue ``orders``; each slice is a turn."""
    console = Console(Gateway(clock=clock), ends_turns=True, steps_singly=True, staged_limit=10_000_000)
    console.put("/queues/%2F/orders", {"durable": True})
    return console


def framed(bodies: list[bytes], head: dict[str, Any] | None = None) -> bytes:
    first = json.dumps(head or {}).encode()
    heads = [first] + [b""] * (len(bodies) - 1)
    return b"".join(pack(">II", len(h), len(body)) + h + body for h, body in zip(heads, bodies, strict=True))


def stage(console: Console, content: bytes, attempt: str = "a", part: int = 0, more: str = "") -> tuple[int, Any]:
    return console.ask("POST", f"{BASE}/stage?attempt={attempt}&part={part}{more}", content=content).result


def stage_all(console: Console, attempt: str = "a", head: dict[str, Any] | None = None) -> None:
    """Stage the rows as two parts."""
    for part in range(2):
        assert stage(console, framed(BODIES[part * ROWS : (part + 1) * ROWS], head), attempt, part)[0] == 200


def batch(*attempts: tuple[str, int, int], number: int | None = 0, **more: Any) -> dict[str, Any]:
    identity = {} if number is None else {"producer": "spark", "query": "q", "batch": number}
    return identity | {"attempts": attempts or [("a", 2, 2 * ROWS)], "exchange": "", "routing_key": "orders"} | more


def commit(console: Console, fields: dict[str, Any]) -> tuple[int, Any]:
    return console.ask("POST", f"{BASE}/commit", fields).result


def begin(console: Console, fields: dict[str, Any], *, slices: int = 0) -> Any:
    """Send a commit, and wait until it is committed and published a little."""
    transport = console.send("POST", f"{BASE}/commit", fields)
    for _ in range(400):
        if any(each["committed_at"] and each["published"] >= slices * 100 for each in listed(console)):
            step(console)
            return transport
        step(console)
    raise AssertionError(listed(console))


def step(console: Console) -> None:
    console.clock.advance(0.001)
    console.gateway.settle()
    console.gateway.broker.clock.advance(0)  # type: ignore[attr-defined]


def listed(console: Console) -> list[Any]:
    return [run.view for run in console.pipeline.runs.of(console.gateway.vhost)]


def finish(console: Console, transport: Any) -> tuple[int, Any]:
    for _ in range(400):
        console.clock.advance(0.1)
        console.gateway.settle()
        if is_complete(transport.value(), "POST"):
            break
    return parsed(transport.value(), "POST").result


def run_out(console: Console) -> None:
    """Let all batches be published."""
    for _ in range(400):
        if not listed(console):
            step(console)
            return
        console.clock.advance(0.1)
        step(console)
    raise AssertionError(listed(console))


def after_kill(console: Console, **options: Any) -> Console:
    """Return a console of a broker with what was durable, and with the staged files."""
    gateway = Gateway(store=console.gateway.store.reopened(), clock=FakeClock())
    return Console(
        gateway, ends_turns=True, steps_singly=True, staged=console.staged, staged_limit=10_000_000, **options
    )


def bodies(console: Console, queue: str = "orders") -> list[bytes]:
    found = []
    while (entry := console.gateway.vhost.queue(queue).take()) is not None:  # type: ignore[union-attr]
        found.append(entry.message.body)
    return found


PUBLISHED = {"published": 2 * ROWS, "duplicate": False, "dropped": 0, "refused": 0}

# ---- Slices ---------------------------------------------------------------------------------------------------------


def test_a_large_batch_is_published_in_order(console: Console) -> None:
    stage_all(console)
    assert commit(console, batch()) == (200, PUBLISHED)
    assert bodies(console) == BODIES
    step(console)
    assert (len(console.pipeline.staging), console.pipeline.staging.size) == (0, 0)
    assert not list(console.staged.rglob("*.part"))


def test_each_step_of_the_store_has_the_position_after_its_messages(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = console.gateway.store
    stage_all(console)
    steps: list[Any] = []
    append = store.append
    monkeypatch.setattr(store, "append", lambda changes: (steps.append(list(changes)), append(changes))[1])
    commit(console, batch())
    publishing = [step for step in steps if any(isinstance(change, Enqueued) for change in step)]
    assert len(publishing) > 3
    published = 0
    for step in publishing:
        published += sum(isinstance(change, Enqueued) for change in step)
        positions = [
            change.entity
            for change in step
            if isinstance(change, Put) and isinstance(change.entity, BatchPositionRecord)
        ]
        assert positions[-1].published == published
    records = [change.entity for step in steps for change in step if isinstance(change, Put)]
    assert sum(isinstance(record, BatchRecord) for record in records) == 1


@pytest.mark.parametrize("slices", [0, 1, 3, 5, 7, 9])
def test_a_killed_batch_continues_where_it_was(console: Console, slices: int) -> None:
    stage_all(console)
    begin(console, batch(), slices=slices)
    after = after_kill(console)
    run_out(after)
    assert bodies(after) == BODIES
    assert commit(after, batch()) == (200, {"published": 0, "duplicate": True})
    assert bodies(after) == []


def test_it_continues_after_a_kill_at_each_turn(console: Console) -> None:
    """Every turn of every broker is its last one once."""
    stage_all(console)
    begin(console, batch())
    for _ in range(60):
        console = after_kill(console)
        if not listed(console):
            break
        for _ in range(3):
            step(console)
    run_out(console)
    assert bodies(console) == BODIES


def test_a_batch_that_was_published_before_its_answer_is_a_duplicate(console: Console) -> None:
    stage_all(console)
    begin(console, batch())
    run_out(console)
    after = after_kill(console)
    assert commit(after, batch()) == (200, {"published": 0, "duplicate": True})
    assert bodies(after) == BODIES


def test_a_commit_in_progress_is_joined_by_its_repetition(console: Console) -> None:
    stage_all(console)
    first = begin(console, batch(), slices=1)
    second = console.send("POST", f"{BASE}/commit", batch())
    assert [finish(console, each) for each in (first, second)] == [(200, PUBLISHED)] * 2
    assert bodies(console) == BODIES


def test_a_batch_that_is_written_again_while_the_first_is_published_is_published_once(console: Console) -> None:
    """The driver was killed after its commit, and its successor writes the batch again."""
    stage_all(console)
    begin(console, batch(), slices=1)
    after = after_kill(console)
    stage_all(after, "again")
    assert commit(after, batch(("again", 2, 2 * ROWS))) == (200, PUBLISHED)
    assert bodies(after) == BODIES
    step(after)
    assert after.pipeline.staging.size == 0


def test_the_next_batch_of_a_query_waits_for_the_one_in_progress(console: Console) -> None:
    stage_all(console)
    first = begin(console, batch(number=1), slices=1)
    stage_all(console, "b")
    later = console.send("POST", f"{BASE}/commit", batch(("b", 2, 2 * ROWS), number=2))
    assert parsed(later.value(), "POST").json["error"] == "batch_in_progress"
    earlier = console.send("POST", f"{BASE}/commit", batch(("b", 2, 2 * ROWS), number=0))
    assert finish(console, earlier) == (200, {"published": 0, "duplicate": True})
    finish(console, first)
    assert bodies(console) == BODIES


def test_the_answer_after_the_time_to_wait_is_the_state(console: Console) -> None:
    stage_all(console)
    transport = console.send("POST", f"{BASE}/commit", batch(wait_s=0))
    for _ in range(4):
        step(console)
    status, answer = parsed(transport.value(), "POST").result
    assert (status, answer["state"], answer["rows"], answer["published"]) == (202, "checked", 2 * ROWS, 0)
    run_out(console)
    assert bodies(console) == BODIES


@pytest.mark.parametrize("wait_s", [-1, 3601, "x", True])
def test_a_wrong_time_to_wait_is_refused(console: Console, wait_s: object) -> None:
    status, answer = commit(console, batch(wait_s=wait_s))
    assert (status, answer["reason"]) == (400, "'wait_s' must be a number of seconds from 0 to 3600")


def test_without_an_identity_a_batch_is_published_each_time(console: Console) -> None:
    for _ in range(2):
        stage_all(console)
        assert commit(console, batch(number=None)) == (200, PUBLISHED)
    assert bodies(console) == 2 * BODIES
    assert commit(console, batch(number=None))[1]["error"] == "not_staged"


def test_a_stream_gets_the_rows_in_order(console: Console) -> None:
    console.put("/queues/%2F/log", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    stage_all(console)
    begin(console, batch(routing_key="log"), slices=3)
    after = after_kill(console)
    run_out(after)
    assert len(after.gateway.vhost.queue("log")) == 2 * ROWS


def test_rows_that_name_their_exchange_are_published_after_a_kill(console: Console) -> None:
    stage_all(console, head={"exchange": "", "routing_key": "orders"})
    begin(console, batch(exchange=None, routing_key=""), slices=1)
    after = after_kill(console)
    run_out(after)
    assert bodies(after) == BODIES


def test_a_stop_interrupts_a_batch(console: Console) -> None:
    stage_all(console)
    begin(console, batch(), slices=1)
    console.pipeline.runs.stop()
    for _ in range(20):
        step(console)
    assert len(console.pipeline.runs) == 0
    after = after_kill(console)
    run_out(after)
    assert bodies(after) == BODIES


def test_a_takeover_before_the_commit_loses_staged_rows_and_later_recognises_the_batch(tmp_path: Path) -> None:
    """In a cluster: the next leader has the log of this one, and a disk of its own."""
    console = Console(batch_limit=100_000, staged_limit=10_000_000)
    console.put("/queues/%2F/orders", {"durable": True})
    stage_all(console)
    store = console.gateway.store
    for number, expected in enumerate(["not_staged", None, None]):
        gateway = Gateway(store=store.reopened())
        console = Console(gateway, staged=tmp_path / str(number), batch_limit=100_000, staged_limit=10_000_000)
        store = gateway.store
        if number == 1:
            assert stage(console, framed(BODIES[ROWS:]), part=1)[1]["parts"] == 1  # the task learns that part 0 is lost
            stage_all(console, "again")
        attempt = "again" if number else "a"
        status, answer = commit(console, batch((attempt, 2, 2 * ROWS)))
        assert answer.get("error") == expected, status
    assert answer["duplicate"]
    assert bodies(console) == BODIES


# ---- Before the commit ----------------------------------------------------------------------------------------------


def test_an_unroutable_row_at_the_end_refuses_the_whole_batch(console: Console) -> None:
    stage_all(console)
    stage(console, framed([b"lost"], {"routing_key": "absent"}), "b")
    fields = batch(("a", 2, 2 * ROWS), ("b", 1, 1))
    status, answer = commit(console, fields)
    reason = "a message to exchange '' with routing key 'absent' reaches no queue"
    assert (status, answer) == (409, {"error": "unroutable", "reason": reason})
    assert bodies(console) == []
    console.put("/queues/%2F/absent", {"durable": True})
    assert commit(console, fields)[1]["published"] == 2 * ROWS + 1


def test_unroutable_rows_may_be_dropped_or_dead_lettered(console: Console) -> None:
    stage_all(console, head={"routing_key": "absent"})
    assert commit(console, batch(unroutable="drop"))[1] == PUBLISHED | {"published": 0, "dropped": 2 * ROWS}
    console.put("/exchanges/%2F/dead", {"type": "fanout"})
    console.post("/bindings/%2F/e/dead/q/orders", {})
    stage_all(console, head={"routing_key": "absent"})
    fields = batch(number=1, unroutable="deadletter", dead_letter_exchange="dead")
    assert commit(console, fields)[1] == PUBLISHED
    assert bodies(console) == BODIES


def test_a_check_does_not_count_messages_as_seen(console: Console) -> None:
    """A deduplicating exchange would drop them when they are published."""
    arguments = {"x-message-deduplication": True}
    console.put("/exchanges/%2F/once", {"type": "fanout", "durable": True, "arguments": arguments})
    console.post("/bindings/%2F/e/once/q/orders", {"routing_key": "k"})
    rows = [(f"{number:04}", body) for number, body in enumerate(BODIES[:ROWS])]
    content = b"".join(framed([body], {"headers": {"x-deduplication-header": key}}) for key, body in rows)
    stage(console, content[: len(content) // 2])
    stage(console, content[len(content) // 2 :], part=1)
    fields = batch(("a", 2, ROWS), exchange="once", routing_key="k")
    assert commit(console, fields) == (200, PUBLISHED | {"published": ROWS})
    assert bodies(console) == BODIES[:ROWS]


@pytest.mark.parametrize(
    ("content", "rows", "reason"),
    [
        (b"\0\0\0\2\0\0\0\1{}", 1, "a part ends in the middle of a row"),
        (framed([b"x"], {"exchange": "none"}), 1, "no exchange 'none' in vhost '/'"),
        (framed([b"x" * 1001]), 1, "a body of 1001 bytes is larger than 'amqp.max_message_size', 1000 bytes"),
        (framed([b"x"]), 2, f"the batch has {2 * ROWS + 2} rows, but {2 * ROWS + 1} were staged"),
    ],
)
def test_an_invalid_row_refuses_the_whole_batch(console: Console, content: bytes, rows: int, reason: str) -> None:
    stage_all(console)
    stage(console, content, "b")
    status, answer = commit(console, batch(("a", 2, 2 * ROWS), ("b", 1, rows)))
    assert (status in (400, 404), answer["reason"]) == (True, reason)
    assert bodies(console) == []
    console.ask("POST", f"{BASE}/discard", {"attempts": ["a", "b"]})
    assert console.pipeline.staging.size == 0


def test_a_damaged_part_refuses_the_batch(console: Console) -> None:
    stage_all(console)
    damage(console.staged, 1)
    status, answer = commit(console, batch())
    assert (status, answer["error"], answer["attempt"]) == (409, "damaged", "a")
    assert answer["reason"].startswith("the staged rows of the batch are unusable: part 1 of attempt 'a' is damaged: ")
    assert bodies(console) == []


def damage(staged: Path, part: int) -> Path:
    """Change a byte of a part in the middle."""
    (path,) = staged.rglob(f"{part}.part")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return path


# ---- After the commit -----------------------------------------------------------------------------------------------


def test_a_part_that_is_damaged_after_the_commit_holds_the_batch(console: Console) -> None:
    stage_all(console)
    begin(console, batch())
    path = damage(console.staged, 1)
    after = after_kill(console)
    for _ in range(100):
        step(after)
    (held,) = listed(after)
    assert (held["state"], held["published"]) == ("held", ROWS)
    assert held["reason"] == f"part 1 of attempt 'a' is damaged: {path}"
    damage(console.staged, 1)  # as it was
    run_out(after)
    assert bodies(after) == BODIES


def test_a_batch_whose_queue_is_deleted_is_held_until_it_is_back(console: Console) -> None:
    stage_all(console)
    transport = begin(console, batch(), slices=2)
    published = bodies(console)
    console.gateway.vhost.delete_queue(console.gateway.vhost.queue("orders"))
    for _ in range(50):
        step(console)
    (held,) = listed(console)
    reason = "a message to exchange '' with routing key 'orders' reaches no queue"
    assert (held["state"], held["reason"]) == ("held", reason)
    console.put("/queues/%2F/orders", {"durable": True})
    assert finish(console, transport) == (200, PUBLISHED)
    assert published + bodies(console) == BODIES


def test_an_alarm_holds_a_batch(console: Console) -> None:
    stage_all(console)
    transport = begin(console, batch(), slices=1)
    console.gateway.broker.alarms.set(Resource.MEMORY, True, "2 of 1 bytes used")
    for _ in range(50):
        step(console)
    (held,) = listed(console)
    assert (held["state"], held["reason"]) == ("held", "publishers are blocked: low on memory")
    console.gateway.broker.alarms.set(Resource.MEMORY, False, "")
    assert finish(console, transport) == (200, PUBLISHED)


class FailingOnce:
    """A method that raises an exception in its n-th call."""

    def __init__(self, function: Callable[..., Any], number: int) -> None:
        self.function = function
        self.left = number

    def __get__(self, instance: object, owner: object = None) -> Callable[..., Any]:
        return partial(self, instance)

    def __call__(self, *arguments: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise RuntimeError("a fault")
        return self.function(*arguments)


FAULTS = {
    "before a run": (RunPublishing, "publish"),
    "before the records of a run": (Journal, "enqueued_run"),
    "after the records of a run, while the queue takes it": (Ready, "_put_away"),
}


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_runs_are_published_repeats_no_row(
    console: Console, monkeypatch: pytest.MonkeyPatch, fault: str, number: int, is_killed: bool
) -> None:
    """The batch goes on behind the rows that are published, those of the same turn too."""
    owner, name = FAULTS[fault]
    failing = FailingOnce(getattr(owner, name), number)
    monkeypatch.setattr(owner, name, failing)
    ready = console.gateway.vhost.queue("orders").ready  # type: ignore[union-attr]
    ready._resident = ready._segment_length = 100  # what is more is put away
    stage_all(console)
    begin(console, batch())
    for _ in range(20):
        step(console)
    assert failing.left <= 0
    if is_killed:
        console = after_kill(console)
    run_out(console)
    assert bodies(console) == BODIES


def test_an_operator_may_end_a_held_batch(console: Console) -> None:
    stage_all(console)
    transport = begin(console, batch(), slices=1)
    console.gateway.vhost.delete_queue(console.gateway.vhost.queue("orders"))
    for _ in range(20):
        step(console)
    found = console.get(f"{BASE}/batches")
    (held,) = found["batches"]
    assert (held["state"], held["user"], held["producer"]) == ("held", "guest", "spark")
    assert found["staged"]["attempts"] == 1
    console.delete(f"{BASE}/batches/{held['name']}")
    assert finish(console, transport)[1]["duplicate"]
    run_out(console)
    assert console.get(f"{BASE}/batches")["batches"] == []
    assert console.pipeline.staging.size == 0
    assert commit(console, batch())[1]["duplicate"]


def test_an_unknown_batch_cannot_be_ended(console: Console) -> None:
    assert console.ask("DELETE", f"{BASE}/batches/none").status == 404


def test_a_committed_attempt_takes_no_more_rows_and_does_not_expire(console: Console, clock: FakeClock) -> None:
    stage_all(console)
    begin(console, batch(), slices=1)
    assert stage(console, framed([b"x"]))[1]["error"] == "committed"
    console.ask("POST", f"{BASE}/discard", {"attempts": ["a"]})
    clock.advance(1000)
    run_out(console)
    assert bodies(console) == BODIES


def test_a_deleted_virtual_host_ends_its_batches(console: Console) -> None:
    console.put("/vhosts/other", {})
    console.put("/permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    console.put("/queues/other/orders", {"durable": True})
    for part in range(2):
        content = framed(BODIES[part * ROWS : (part + 1) * ROWS])
        console.ask("POST", f"/pipeline/other/stage?attempt=a&part={part}", content=content)
    console.send("POST", "/pipeline/other/commit", batch())
    for _ in range(30):
        step(console)
    console.delete("/vhosts/other")
    for _ in range(100):
        step(console)
    assert len(console.pipeline.runs) == 0
    after = after_kill(console)
    assert "other" not in after.gateway.broker.vhost_by_name
    assert console.pipeline.staging.size == 0


# ---- Permissions and space ------------------------------------------------------------------------------------------


def test_staging_for_an_exchange_needs_the_write_permission(console: Console) -> None:
    console.gateway.add_user("bob", "bob", "/", ("", "^amq\\.direct$", ""))
    path = f"{BASE}/stage?attempt=a&part=0&exchange=orders"
    console.put("/exchanges/%2F/orders", {"type": "fanout"})
    status, answer = console.ask("POST", path, content=framed([b"x"]), user="bob").result
    reason = "user 'bob' lacks the permission to write on exchange 'orders' in vhost '/'"
    assert (status, answer["reason"]) == (403, reason)


def test_rows_that_the_disk_does_not_take_are_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        status, answer = stage(console, framed([b"x"]))
    reason = "the rows cannot be written: [Errno 28] No space left on device"
    assert (status, answer) == (503, {"error": "staging_full", "reason": reason})
    assert console.pipeline.staging.size == 0
    assert stage(console, framed([b"x"]))[0] == 200


def test_a_part_leaves_the_free_space_that_the_broker_needs(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.staged_files, "_least_free", lambda: 2**62)
    status, answer = stage(console, framed([b"x"]))
    assert (status, answer["error"]) == (503, "staging_full")
    assert answer["reason"].endswith(" bytes free, and 'disk_free_limit' must stay free")


def test_the_answer_counts_the_durable_parts(console: Console) -> None:
    """A node that took over has fewer than the task has sent."""
    assert stage(console, framed([b"x"]), part=1)[1] == {"staged": 11, "parts": 1}
    assert stage(console, framed([b"x"]), part=0)[1] == {"staged": 11, "parts": 2}


def test_staged_rows_expire_after_a_restart_too(console: Console) -> None:
    stage_all(console)
    after = after_kill(console)
    assert len(after.pipeline.staging) == 1
    after.gateway.broker.clock.advance(61)  # type: ignore[attr-defined]
    assert after.pipeline.staging.size == 0
    assert not list(after.staged.rglob("*.part"))


# ---- Runs of a job --------------------------------------------------------------------------------------------------


def staged_attempts(console: Console) -> set[str]:
    """Return the attempts with files, which are all that the broker knows."""
    found = {part.key.name for part in console.staged_files.found()}
    assert len(console.pipeline.staging) == len(found)
    return found


def test_a_later_run_of_a_batch_replaces_the_earlier_one(console: Console) -> None:
    for task in ("a", "b"):
        assert stage(console, framed([b"x"]), f"batch.1.{task}")[0] == 200
    stage(console, framed([b"x"]), "other.1.a")
    stage(console, framed([b"x"]), "batch.1")
    assert stage(console, framed([b"x"]), "batch.2.a")[0] == 200
    assert staged_attempts(console) == {"batch.2.a", "other.1.a", "batch.1"}
    status, answer = stage(console, framed([b"x"]), "batch.1.c")
    assert (status, answer["error"]) == (409, "replaced")
    assert staged_attempts(console) == {"batch.2.a", "other.1.a", "batch.1"}


def test_the_rows_of_another_user_are_not_replaced(console: Console) -> None:
    console.add_user("maria")
    stage(console, framed([b"x"]), "batch.1.a")
    path = f"{BASE}/stage?attempt=batch.2.a&part=0"
    assert console.ask("POST", path, content=framed([b"x"]), user="maria").status == 200
    assert stage(console, framed([b"x"]), "batch.1.b")[0] == 200
    assert staged_attempts(console) == {"batch.1.a", "batch.1.b", "batch.2.a"}


@pytest.mark.parametrize("order", ["earlier first", "later first"])
def test_the_later_run_of_a_batch_is_known_after_a_kill(console: Console, order: str) -> None:
    """The files of the earlier run were not removed yet."""
    stage(console, framed([b"x"]), "batch.2.a")
    guest = next(console.staged_files.found()).key
    console.staged_files.write(guest._replace(name="batch.1.a"), 0, framed([b"x"]))
    times = (10, 20) if order == "earlier first" else (20, 10)
    for path in console.staged.rglob("*.part"):
        name = b"batch.1.a" in path.read_bytes()
        os.utime(path, (time.time() - times[not name],) * 2)
    after = after_kill(console)
    assert staged_attempts(after) == {"batch.2.a"}
    assert stage(after, framed([b"x"]), "batch.1.b")[1]["error"] == "replaced"


def test_a_thousand_attempts_are_replaced_in_slices(console: Console) -> None:
    for number in range(1000):
        stage(console, framed([b"x"]), f"batch.1.{number}")
    stage(console, framed([b"x"]), "batch.2.a")
    assert 1 < len(console.pipeline.staging) < 1000
    for _ in range(100):
        console.gateway.broker.clock.advance(0.1)  # type: ignore[attr-defined]
        step(console)
    assert staged_attempts(console) == {"batch.2.a"}


def test_attempts_of_a_run_expire_together(console: Console, clock: FakeClock) -> None:
    """A large batch takes longer to stage than the rows of one task are kept."""
    stage(console, framed([b"x"]), "batch.1.first")
    stage(console, framed([b"x"]), "alone")
    for number in range(4):
        clock.advance(40)
        stage(console, framed([b"x"]), f"batch.1.{number}")
    assert staged_attempts(console) == {"batch.1.first", *(f"batch.1.{number}" for number in range(4))}
    clock.advance(121)
    assert staged_attempts(console) == set()


def test_committed_rows_are_not_replaced(console: Console) -> None:
    stage_all(console, "batch.1.a")
    transport = begin(console, batch(("batch.1.a", 2, 2 * ROWS)))
    stage_all(console, "batch.2.a")
    assert finish(console, transport) == (200, PUBLISHED)
    assert bodies(console) == BODIES
    assert commit(console, batch(("batch.2.a", 2, 2 * ROWS))) == (200, {"published": 0, "duplicate": True})
    assert staged_attempts(console) == set()


def test_committed_rows_are_not_replaced_by_a_restart_either(console: Console) -> None:
    """A task of a later run asked before the commit whether the batch is committed, and has staged rows after it."""
    stage_all(console, "batch.1.a")
    begin(console, batch(("batch.1.a", 2, 2 * ROWS)), slices=1)
    assert stage(console, framed([b"x"]), "batch.2.a")[0] == 200
    after = after_kill(console)
    assert staged_attempts(after) == {"batch.1.a", "batch.2.a"}
    run_out(after)
    assert bodies(after) == BODIES
    assert staged_attempts(after) == {"batch.2.a"}


def test_rows_are_not_replaced_while_a_small_batch_is_published(clock: FakeClock) -> None:
    console = Console(Gateway(clock=clock), ends_turns=True, steps_singly=True)
    console.put("/queues/%2F/orders", {"durable": True})
    rows = [b"%d" % number for number in range(20)]
    for part in range(2):
        stage(console, framed(rows[part * 10 : part * 10 + 10]), "batch.1.a", part)
    transport = console.send("POST", f"{BASE}/commit", batch(("batch.1.a", 2, 20)))
    step(console)
    assert bodies(console) == []
    stage(console, framed([b"x"]), "batch.2.a")
    assert finish(console, transport) == (200, PUBLISHED | {"published": 20})
    assert bodies(console) == rows


def test_attempts_without_a_run_expire_soon_after_the_machine_has_started(console: Console) -> None:
    """The clock of the machine is younger than the rows."""
    stage(console, framed([b"x"]), "alone")
    stage(console, framed([b"x"]), "batch.1.a")
    for path in console.staged.rglob("*.part"):
        os.utime(path, (time.time() - 5000,) * 2)
    after = after_kill(console)
    after.gateway.broker.clock.advance(1)  # type: ignore[attr-defined]
    assert staged_attempts(after) == set()


def test_a_committed_attempt_does_not_keep_the_expiry_busy(
    console: Console, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is younger than an attempt after it, whose run has renewed it."""
    calls: list[object] = []
    expire = Staging._expire
    monkeypatch.setattr(Staging, "_expire", lambda self: (calls.append(self), expire(self)))
    stage(console, framed([b"x"]), "run.1.first")
    clock.advance(30)
    stage(console, framed([b"x"]), "run.1.second")
    clock.advance(20)
    stage_all(console, "committed")
    console.delete("/queues/%2F/orders")
    console.pipeline.staging.keep([key for key in console.pipeline.staging._attempts if key.name == "committed"])
    for _ in range(100):
        clock.advance(1)
    assert len(calls) < 10
    assert staged_attempts(console) == {"committed"}


def test_a_run_replaces_the_earlier_one_before_it_needs_space(clock: FakeClock) -> None:
    part = framed([b"x" * 100])
    console = Console(Gateway(clock=clock), staged_limit=3 * len(part))
    for attempt in ("batch.1.a", "batch.1.b", "other"):
        assert stage(console, part, attempt)[0] == 200
    assert stage(console, part, "alone.2.a")[1]["error"] == "staging_full"
    assert stage(console, part, "batch.2.a")[0] == 200
    assert stage(console, part, "alone.1.a")[0] == 200  # the refused part is no later run
    assert staged_attempts(console) == {"batch.2.a", "other", "alone.1.a"}


def state_of(console: Console, number: int = 0) -> object:
    return console.ask("GET", f"{BASE}/batch?producer=spark&query=q&batch={number}").result


def test_the_state_of_a_batch_tells_whether_its_rows_are_needed(console: Console) -> None:
    assert state_of(console) == (200, {"state": "unknown"})
    stage_all(console)
    assert state_of(console) == (200, {"state": "unknown"})
    transport = begin(console, batch())
    assert state_of(console) == (200, {"state": "publishing"})
    assert state_of(console, 1) == (200, {"state": "unknown"})
    joined = console.send("POST", f"{BASE}/commit", batch(is_repeated=True) | {"attempts": []})
    assert finish(console, transport) == (200, PUBLISHED)
    assert finish(console, joined) == (200, PUBLISHED)
    assert state_of(console) == (200, {"state": "published"})
    again = batch(is_repeated=True) | {"attempts": []}
    assert commit(console, again) == (200, {"published": 0, "duplicate": True})


def test_a_repetition_of_an_unknown_batch_is_refused(console: Console) -> None:
    """Otherwise a batch without rows would be recorded in its place."""
    status, answer = commit(console, batch(is_repeated=True) | {"attempts": []})
    assert (status, answer["error"]) == (409, "not_staged")
    assert state_of(console) == (200, {"state": "unknown"})


@pytest.mark.parametrize("query", ["", "producer=a&query=b", "producer=a&batch=0", "producer=a&query=b&batch=x"])
def test_the_state_of_a_batch_needs_its_identity(console: Console, query: str) -> None:
    assert console.ask("GET", f"{BASE}/batch?{query}").status == 400


def test_what_is_no_part_is_removed_at_the_start(console: Console) -> None:
    stage_all(console)
    (directory,) = console.staged.iterdir()
    (directory / "2.new").write_bytes(b"torn")
    (console.staged / "empty").mkdir()
    after = after_kill(console)
    assert [path.name for path in sorted(after.staged.rglob("*.*"))] == ["0.part", "1.part"]
    assert commit(after, batch()) == (200, PUBLISHED)
