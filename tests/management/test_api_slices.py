"""Long answers are made in slices, no faster than the client takes them, and with bounded memory."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.management.fetching import MAX_MESSAGES
from gateway.management.http.ordering import sort_in_steps
from tests.management.console import Console
from tests.management.http_line import LOGIN, Line

#: The longest turn that the tests tolerate, in seconds of computing; what is aimed at is 5 ms.
LONGEST_TURN_S = 0.05


def fill(console: Console, count: int, body: bytes = b"") -> None:
    vhost = console.gateway.vhost
    vhost.declare_queue("q")
    header = native_header(Properties())
    for _ in range(count):
        vhost.publish(vhost.default_exchange, Message("", "q", header, body))


def turns(line: Line, until: Callable[[], bool]) -> list[float]:
    """Let turns pass until something is so; return how long each computed."""
    spent = []
    for _ in range(20_000):
        began = time.thread_time()
        line.turn()
        spent.append(time.thread_time() - began)
        line.console.gateway.settle()
        if until():
            return spent
        line.console.clock.rightNow += 0.0001
    raise AssertionError("it does not end")


def body(count: int, ackmode: str) -> bytes:
    return json.dumps({"ackmode": ackmode, "count": count, "encoding": "auto"}).encode()


def test_a_fetch_of_very_many_messages_is_bounded_and_in_slices() -> None:
    console = Console()
    fill(console, MAX_MESSAGES + 5)
    line = Line(console)
    line.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(10**9, "ack_requeue_false"))
    spent = turns(line, lambda: line.received.endswith(b"0\r\n\r\n"))
    assert len(line.answer.json) == MAX_MESSAGES
    assert len(console.gateway.vhost.queue("q")) == 5
    assert console.gateway.vhost.queue("q").unsettled == 0
    assert len(spent) > 20
    assert sorted(spent)[-3] < LONGEST_TURN_S


def test_the_messages_of_a_client_that_goes_come_back_in_order() -> None:
    console = Console()
    fill(console, 3000)
    queue = console.gateway.vhost.queue("q")
    line = Line(console)
    line.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_false"))
    for _ in range(3):
        line.turn()
    assert 0 < queue.unsettled < 3000
    line.hang_up()
    assert (queue.unsettled, len(queue)) == (0, 3000)


def test_a_client_that_stops_reading_leaves_the_rest_in_the_queue() -> None:
    console = Console()
    fill(console, 3000, b"x" * 500)
    queue = console.gateway.vhost.queue("q")
    line = Line(console)
    line.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_true"))
    turns(line, lambda: bool(line.received))
    line.transport.producer.pauseProducing()
    held = queue.unsettled
    line.wait(5)
    assert queue.unsettled == held < 1000  # one slice of the fetch: it ends by time too
    line.transport.producer.resumeProducing()
    turns(line, lambda: line.received.endswith(b"0\r\n\r\n"))
    assert len(line.answer.json) == 3000
    assert (queue.unsettled, len(queue)) == (0, 3000)


def test_a_queue_that_is_deleted_meanwhile_ends_a_fetch() -> None:
    console = Console()
    fill(console, 3000)
    vhost = console.gateway.vhost
    line = Line(console)
    line.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_true"))
    line.turn()
    vhost.delete_queue(vhost.queue("q"))
    turns(line, lambda: line.received.endswith(b"0\r\n\r\n") or b"\r\n\r\n[" in line.received)
    assert len(line.answer.json) < 3000


LONG = ["/queues", "/queues?sort=messages&sort_reverse=true", "/queues?page=7&page_size=500&name=7&use_regex=true",
        "/definitions", "/definitions/%2F", "/bindings", "/exchanges/%2F/amq.default/bindings/source",
        "/exchanges/%2F/amq.fanout/bindings/source", "/vhosts", "/overview"]  # fmt: skip


@pytest.fixture(scope="module")
def large() -> Console:
    """A console in front of 10,000 queues, each bound once."""
    console = Console()
    vhost = console.gateway.vhost
    fanout = vhost.exchange("amq.fanout")
    for number in range(10_000):
        vhost.bind(fanout, vhost.declare_queue(f"q{number}"), "", {})
    console.gateway.settle()
    return console


@pytest.mark.parametrize("path", LONG)
def test_no_turn_of_a_long_list_is_long(large: Console, path: str) -> None:
    line = Line(large)
    line.ask(f"GET /api{path}", LOGIN)
    spent = turns(line, lambda: line.received.endswith((b"0\r\n\r\n", b"}", b"]")) and line.protocol._request is None)
    assert line.answer.status == 200
    assert line.answer.json
    assert sorted(spent)[-2:] < [LONGEST_TURN_S] * 2


def test_readers_that_stop_hold_a_piece_each(large: Console) -> None:
    lines = [Line(large) for _ in range(30)]
    for line in lines:
        line.ask("GET /api/queues", LOGIN)
        line.transport.producer.pauseProducing()
    for _ in range(100):
        lines[0].turn()
    assert [line.received for line in lines] == [b""] * 30
    for line in lines[1:]:
        line.hang_up()
    lines[0].transport.producer.resumeProducing()
    turns(lines[0], lambda: lines[0].received.endswith(b"0\r\n\r\n"))
    assert len(lines[0].answer.json) == 10_000


# The pieces that lists are made of


def ordered(entries: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    steps = sort_in_steps(entries, key)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return list(end.value)


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1000, 12_345])
def test_sorting_in_steps_is_sorting(count: int) -> None:
    entries = [(number * 7919) % 1000 for number in range(count)]
    pairs = list(enumerate(entries))
    assert ordered(pairs, lambda pair: pair[1]) == sorted(pairs, key=lambda pair: pair[1])
