"""Archives over HTTP: listings with their lag, and the trace table."""

from typing import Any

from gateway.kernel.archives.archive import ArchiveRules
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.origin import Origin
from tests.management.console import Console

KEEP = {"pattern": "^kept$", "apply-to": "queues", "definition": {"archive": True}}


def publish(console: Console, body: bytes, times: int = 1) -> None:
    vhost = console.gateway.broker.vhost("/")
    for _ in range(times):
        message = Message("", "kept", native_header(Properties()), body)
        vhost.publish(vhost.default_exchange, message, Origin("publisher", 1, "guest", "amqp091"))
    console.gateway.settle()


def archive_queue(console: Console) -> None:
    console.put("/policies/%2F/keep", KEEP)
    console.put("/queues/%2F/kept", {"durable": True})


def archive(console: Console) -> dict[str, Any]:
    [found] = console.get("/archives/%2F")
    assert isinstance(found, dict)
    return found


def test_an_archive_is_listed_with_its_contents(console: Console) -> None:
    archive_queue(console)
    publish(console, b"body", 3)
    found = archive(console)
    assert (found["vhost"], found["source"], found["name"], found["state"]) == ("/", "queue", "kept", "running")
    assert (found["messages"], found["next_offset"], found["filed_offset"], found["waiting_segments"]) == (3, 3, 0, 0)
    assert found["message_bytes"] > 3 * len(b"body")
    assert (found["held_back"], found["dropped"]) == ([], 0)
    assert console.get("/archives") == [found]


def test_an_archive_that_cannot_be_written_has_the_reason(console: Console) -> None:
    archive_queue(console)
    publish(console, b"body", 1)
    assert archive(console)["failure"] == ""
    [kept] = console.gateway.broker.vhost("/").archives
    kept.failure = "the bucket does not exist"
    found = archive(console)
    assert (found["state"], found["failure"]) == ("failing", "the bucket does not exist")


def test_a_full_archive_lists_the_blocked_connections(console: Console) -> None:
    console.gateway.broker.archive_context.rules = ArchiveRules(segment_size=500, most_waiting=1000)
    archive_queue(console)
    for _ in range(4):
        publish(console, bytes(600))
    found = archive(console)
    assert (found["state"], found["held_back"]) == ("full", ["publisher"])
    assert found["waiting_segments"] == 4
    assert found["waiting_bytes"] > 1000


def test_archives_are_visible_only_with_access_to_their_virtual_host(console: Console) -> None:
    archive_queue(console)
    console.put("/users/clerk", {"password": "clerk", "tags": "management"})
    assert console.ask("GET", "/archives/%2F", user="clerk").status == 401
    assert console.ask("GET", "/archives", user="clerk").json == []
    assert console.ask("GET", "/archives/none").status == 404


def test_the_trace_table_is_turned_on_and_off(console: Console) -> None:
    assert console.get("/vhosts/%2F")["trace_table"] is False
    console.put("/vhosts/%2F", {"trace_table": True})
    assert console.get("/vhosts/%2F")["trace_table"] is True
    assert archive(console)["source"] == "trace"
    console.put("/vhosts/%2F", {"description": "still on"})
    assert console.get("/vhosts/%2F")["trace_table"] is True
    console.put("/vhosts/%2F", {"trace_table": False})
    assert console.get("/vhosts/%2F")["trace_table"] is False
    assert console.gateway.broker.vhost("/").tracing is None


def test_the_trace_table_setting_is_exported_and_imported(console: Console) -> None:
    console.put("/vhosts/%2F", {"trace_table": True})
    other = Console()
    other.post("/definitions", {"vhosts": console.get("/definitions")["vhosts"]})
    assert other.get("/vhosts/%2F")["trace_table"] is True
    assert "trace_table" not in Console().get("/definitions")["vhosts"][0]
