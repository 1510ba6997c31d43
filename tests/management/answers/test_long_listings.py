"""Listings look at a few objects in a step, also where most of them are not listed."""

from typing import Any

import pytest

from gateway.management.resources.clients.consumers import consumers_in
from gateway.testing import Recipient
from tests.management.console import Console

#: Objects of a virtual host in these tests, most of which a listing leaves out.
MANY = 1000


@pytest.fixture
def crowded(console: Console) -> Console:
    """A virtual host with many queues and exchanges; one queue has a consumer, and one exchange bindings."""
    vhost = console.gateway.vhost
    for number in range(MANY):
        vhost.declare_queue(f"q{number}", is_durable=True)
        vhost.declare_exchange(f"e{number}", "direct", is_durable=True)
    for number in range(MANY):
        vhost.bind(vhost.exchange("e500"), vhost.queue(f"q{number}"), "key")
        vhost.bind(vhost.exchange("amq.topic"), vhost.queue("q7"), f"key.{number}")
    Recipient().consume(vhost.queue("q500"))
    console.gateway.settle()
    return console


def names(rows: list[Any], field: str) -> list[str]:
    return [row[field] for row in rows]


def test_consumers_are_listed_with_a_pause_after_each_queue(crowded: Console) -> None:
    found = list(consumers_in([crowded.gateway.vhost]))
    assert found.count(None) == MANY
    assert [consumer.queue.name for consumer in found if consumer is not None] == ["q500"]
    assert [row["queue"]["name"] for row in crowded.get("/consumers")] == ["q500"]
    assert crowded.get("/stomp/subscriptions") == []


@pytest.mark.parametrize(
    ("source", "destination", "count"),
    [("e500", "q7", 1), ("amq.topic", "q7", MANY), ("amq.topic", "q8", 0), ("e1", "q7", 0), ("e500", "missing", 0)],
)
def test_the_bindings_between_two_ends_are_those_that_both_have(
    crowded: Console, source: str, destination: str, count: int
) -> None:
    found = crowded.get(f"/bindings/%2F/e/{source}/q/{destination}")
    assert names(found, "source") == [source] * count
    assert names(found, "destination") == [destination] * count


def test_the_busiest_exchanges_are_those_with_bindings(crowded: Console) -> None:
    drawn = crowded.get("/topology/%2F?limit=2")
    assert names(drawn["nodes"], "name")[0] in ("amq.topic", "e500")
    assert drawn["is_partial"]


def test_streams_are_found_among_many_queues(crowded: Console) -> None:
    arguments = {"x-queue-type": "stream"}
    for name in ("b", "a"):
        crowded.put(f"/queues/%2F/{name}", {"durable": True, "arguments": arguments})
    assert names(crowded.get("/pipeline/%2F/streams")["queues"], "queue") == ["a", "b"]


def test_a_page_of_the_audit_record_has_the_entries_of_its_filter(console: Console) -> None:
    for number in range(70):
        console.put(f"/queues/%2F/q{number % 35}", {"durable": True})
        console.ask("DELETE", f"/queues/%2F/q{number % 35}")
    page = console.get("/audit?action=queue.created&page=2&page_size=30")
    assert names(page["items"], "subject") == [f"q{number % 35}" for number in range(39, 9, -1)]
    assert (page["filtered_count"], page["total_count"], page["item_count"], page["page_count"]) == (70, 140, 30, 3)
    last = console.get("/audit?action=queue.created&page=3&page_size=30")
    assert names(last["items"], "subject") == [f"q{number}" for number in range(9, -1, -1)]
    assert console.ask("GET", "/audit?page=9").json["error"] == "page_out_of_range"
