"""Long responses are generated in slices, as fast as the client reads, with bounded memory."""

import json
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.management.fetching import MAX_MESSAGES
from gateway.management.http.listing import MOST_SELECTED
from gateway.management.http.ordering import first_in_steps, sort_in_steps
from tests.management.client_connection import LOGIN, ClientConnection
from tests.management.console import Console

#: Maximum duration of a turn in seconds of computing time; the goal is 5 ms.
LONGEST_TURN_S = 0.05


def fill(console: Console, count: int, body: bytes = b"") -> None:
    vhost = console.gateway.vhost
    vhost.declare_queue("q")
    header = native_header(Properties())
    for _ in range(count):
        vhost.publish(vhost.default_exchange, Message("", "q", header, body))


def turns(client: ClientConnection, until: Callable[[], bool]) -> list[float]:
    """Run turns until a condition holds; return their durations."""
    spent = []
    for _ in range(20_000):
        began = time.thread_time()
        client.turn()
        spent.append(time.thread_time() - began)
        client.console.gateway.settle()
        if until():
            return spent
        client.console.clock.rightNow += 0.0001
    raise AssertionError("the condition did not become true")


def body(count: int, ackmode: str) -> bytes:
    return json.dumps({"ackmode": ackmode, "count": count, "encoding": "auto"}).encode()


def test_a_large_fetch_is_limited_and_runs_in_slices() -> None:
    console = Console()
    fill(console, MAX_MESSAGES + 5)
    client = ClientConnection(console)
    client.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(10**9, "ack_requeue_false"))
    spent = turns(client, lambda: client.received.endswith(b"0\r\n\r\n"))
    assert len(client.answer.json) == MAX_MESSAGES
    assert len(console.gateway.vhost.queue("q")) == 5
    assert console.gateway.vhost.queue("q").unsettled == 0
    assert len(spent) >= 10
    assert sorted(spent)[-3] < LONGEST_TURN_S


def test_messages_of_a_disconnected_client_are_requeued_in_order() -> None:
    console = Console()
    fill(console, 3000)
    queue = console.gateway.vhost.queue("q")
    client = ClientConnection(console)
    client.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_false"))
    for _ in range(3):
        client.turn()
    assert 0 < queue.unsettled < 3000
    client.hang_up()
    assert (queue.unsettled, len(queue)) == (0, 3000)


def test_a_fetch_pauses_when_the_client_stops_reading() -> None:
    console = Console()
    fill(console, 3000, b"x" * 500)
    queue = console.gateway.vhost.queue("q")
    client = ClientConnection(console)
    client.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_true"))
    turns(client, lambda: bool(client.received))
    client.transport.producer.pauseProducing()
    held = queue.unsettled
    client.wait(5)
    assert queue.unsettled == held < 1000  # one slice of the fetch, which ends by time too
    client.transport.producer.resumeProducing()
    turns(client, lambda: client.received.endswith(b"0\r\n\r\n"))
    assert len(client.answer.json) == 3000
    assert (queue.unsettled, len(queue)) == (0, 3000)


def test_deleting_the_queue_ends_a_fetch() -> None:
    console = Console()
    fill(console, 3000)
    vhost = console.gateway.vhost
    client = ClientConnection(console)
    client.ask("POST /api/queues/%2F/q/get", LOGIN, body=body(3000, "ack_requeue_true"))
    client.turn()
    vhost.delete_queue(vhost.queue("q"))
    turns(client, lambda: client.received.endswith(b"0\r\n\r\n") or b"\r\n\r\n[" in client.received)
    assert len(client.answer.json) < 3000


LONG = ["/queues", "/queues?sort=messages&sort_reverse=true", "/queues?page=7&page_size=500&name=7&use_regex=true",
        "/definitions", "/definitions/%2F", "/bindings", "/exchanges/%2F/amq.default/bindings/source",
        "/exchanges/%2F/amq.fanout/bindings/source", "/vhosts", "/overview"]  # fmt: skip


@pytest.fixture(scope="module")
def large() -> Console:
    """A console of a broker with 10,000 queues, each bound once."""
    console = Console()
    vhost = console.gateway.vhost
    fanout = vhost.exchange("amq.fanout")
    for number in range(10_000):
        vhost.bind(fanout, vhost.declare_queue(f"q{number}"), "", {})
    console.gateway.settle()
    return console


@pytest.mark.parametrize("path", LONG)
def test_turns_of_a_long_listing_are_short(large: Console, path: str) -> None:
    client = ClientConnection(large)
    client.ask(f"GET /api{path}", LOGIN)
    spent = turns(
        client, lambda: client.received.endswith((b"0\r\n\r\n", b"}", b"]")) and client.protocol._request is None
    )
    assert client.answer.status == 200
    assert client.answer.json
    assert sorted(spent)[-2:] < [LONGEST_TURN_S] * 2


def test_clients_that_stop_reading_hold_one_piece_each(large: Console) -> None:
    lines = [ClientConnection(large) for _ in range(30)]
    for client in lines:
        client.ask("GET /api/queues", LOGIN)
        client.transport.producer.pauseProducing()
    for _ in range(100):
        lines[0].turn()
    assert [client.received for client in lines] == [b""] * 30
    for client in lines[1:]:
        client.hang_up()
    lines[0].transport.producer.resumeProducing()
    turns(lines[0], lambda: lines[0].received.endswith(b"0\r\n\r\n"))
    assert len(lines[0].answer.json) == 10_000


# Parts of listings


def ordered(entries: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    return result_of(sort_in_steps(entries, key))


def result_of(steps: Generator[None, None, list[Any]]) -> list[Any]:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return list(end.value)


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1000, 12_345])
def test_sorting_in_steps_has_the_result_of_sorted(count: int) -> None:
    entries = [(number * 7919) % 1000 for number in range(count)]
    pairs = list(enumerate(entries))
    assert ordered(pairs, lambda pair: pair[1]) == sorted(pairs, key=lambda pair: pair[1])


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 12_345])
@pytest.mark.parametrize("most", [1, 100, 500])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_first_in_steps_are_those_of_sorted(count: int, most: int, is_reversed: bool) -> None:
    pairs = [(number, (number * 7919) % 1000) for number in range(count)]
    expected = ordered(pairs, lambda pair: pair[1])[:: -1 if is_reversed else 1]
    assert result_of(first_in_steps(pairs, lambda pair: pair[1], most, is_reversed=is_reversed)) == expected[:most]


@pytest.mark.parametrize("sort", ["", "name", "messages", "state", "memory", "arguments.x"])
@pytest.mark.parametrize("is_reversed", ["false", "true"])
def test_pages_that_are_selected_and_sorted_follow_each_other(large: Console, sort: str, is_reversed: str) -> None:
    size = 250
    pages = range(1, 2 * MOST_SELECTED // size + 2)
    queries = [f"sort={sort}&sort_reverse={is_reversed}&page={number}&page_size={size}" for number in pages]
    found = [queue["name"] for query in queries for queue in large.get(f"/queues?{query}&columns=name")["items"]]
    names = [f"q{number}" for number in range(10_000)]
    assert found == sorted(names, reverse=is_reversed == "true")[: size * len(pages)]
