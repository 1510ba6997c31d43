"""Large imports over HTTP: they do not block other work, and run one after the other."""

from typing import Any

import pytest

from gateway.kernel.journal.journal import Journal
from tests.management.console import Console, parsed


def queues(prefix: str, count: int) -> list[dict[str, Any]]:
    return [{"name": f"{prefix}{number}", "vhost": "/"} for number in range(count)]


def names(console: Console) -> set[str]:
    return set(console.gateway.vhost.queue_by_name)


def advance(console: Console, transport: Any, steps: int = 300) -> Any:
    """Run the work slice by slice until the response is complete; return it."""
    for _ in range(steps):
        console.clock.advance(0.01)
        console.gateway.settle()
        if transport.value():
            return parsed(transport.value())
    raise AssertionError("no answer")


def test_an_import_does_not_run_while_its_request_is_received(console: Console) -> None:
    transport = console.send("POST", "/definitions", {"queues": queues("q", 100)})
    assert (names(console), transport.value()) == (set(), b"")
    assert advance(console, transport).status == 204
    assert len(names(console)) == 100


def test_an_import_pauses_while_the_store_is_behind(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    is_filling = True
    monkeypatch.setattr(Journal, "delays_long_work", lambda journal: is_filling)
    transport = console.send("POST", "/definitions", {"queues": queues("q", 100)})
    for _ in range(50):
        console.clock.advance(0.01)
        console.gateway.settle()
    assert len(names(console)) < 100, "one step for each pause"
    is_filling = False
    assert advance(console, transport).status == 204
    assert len(names(console)) == 100


def test_a_second_import_starts_after_the_first(console: Console) -> None:
    made: list[str] = []
    console.gateway.broker.events.subscribe(
        lambda event: made.append(event.subject) if event.name == "queue.created" else None
    )
    first = console.send("POST", "/definitions", {"queues": queues("first", 400)})
    second = console.send("POST", "/definitions/%2F", {"queues": queues("second", 1)})
    assert advance(console, second).status == 204
    assert first.value()
    assert made == [*(f"first{number}" for number in range(400)), "second0"]


def test_a_failed_import_does_not_block_the_next(console: Console) -> None:
    first = console.send("POST", "/definitions", content=b"{x")
    second = console.send("POST", "/definitions", {"queues": queues("second", 1)})
    assert advance(console, second).status == 204
    assert parsed(first.value()).status == 400
    assert names(console) == {"second0"}


def test_definitions_with_an_error_are_not_applied(console: Console) -> None:
    answer = console.ask("POST", "/definitions", {"queues": [*queues("q", 200), {"name": 3}]})
    assert answer.result == (
        400,
        {"error": "bad_request", "reason": "definitions: queues[200].name: must be a valid string, not 3"},
    )
    assert names(console) == set()


def test_a_category_that_is_no_list_is_reported_for_one_virtual_host_too(console: Console) -> None:
    answer = console.ask("POST", "/definitions/%2F", {"queues": 3})
    assert answer.result == (
        400,
        {"error": "bad_request", "reason": "definitions: queues: must be an array, not 3"},
    )


def test_an_import_continues_after_its_client_disconnects(console: Console) -> None:
    made: list[str] = []
    console.gateway.broker.events.subscribe(
        lambda event: made.append(event.subject) if event.name == "queue.created" else None
    )
    first = console.send("POST", "/definitions", {"queues": queues("first", 400)})
    waiting = console.send("POST", "/definitions", {"queues": queues("waiting", 1)})
    last = console.send("POST", "/definitions/%2F", {"queues": queues("last", 1)})
    first.hang_up()
    waiting.hang_up()
    assert advance(console, last).status == 204
    assert made == [*(f"first{number}" for number in range(400)), "last0"]
