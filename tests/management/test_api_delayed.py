"""Messages that are held back until their time: listed and cancelled over HTTP."""

from typing import Any

import pytest

from tests.management.console import Console

#: When the clock of these tests stands still, in milliseconds.
NOW_MS = 1_700_000_000_000

PLACES = ["/queues/%2F/orders", "/exchanges/%2F/later"]


@pytest.fixture
def waiting(console: Console) -> Console:
    """Three messages wait in the queue ``orders``, and three before the exchange ``later``."""
    console.put("/queues/%2F/orders", {"durable": True, "arguments": {"x-delayed-delivery": True}})
    console.put("/exchanges/%2F/later", {"type": "x-delayed-message", "arguments": {"x-delayed-type": "direct"}})
    for delay_s in (30, 10, 20):
        publish(console, "amq.default", delay_s)
        publish(console, "later", delay_s)
    return console


def publish(console: Console, exchange: str, delay_s: int) -> None:
    properties = {"headers": {"x-delay": delay_s * 1000}, "delivery_mode": 2}
    fields = {"properties": properties, "routing_key": "orders", "payload": f"in {delay_s}"}
    console.post(f"/exchanges/%2F/{exchange}/publish", fields | {"payload_encoding": "string"})


def bodies(page: Any) -> list[str]:
    return [each["payload"] for each in page["items"]]


@pytest.mark.parametrize("place", PLACES)
def test_the_soonest_comes_first(waiting: Console, place: str) -> None:
    page = waiting.get(f"{place}/delayed")
    assert bodies(page) == ["in 10", "in 20", "in 30"]
    assert (page["total_count"], page["page"], page["page_count"]) == (3, 1, 1)
    first = page["items"][0]
    assert (first["due_at_ms"], first["due_at"]) == (NOW_MS + 10_000, "2023-11-14T22:13:30.000+00:00")
    assert (first["routing_key"], first["payload_bytes"], first["payload_encoding"]) == ("orders", 5, "string")
    assert first["properties"] == {"headers": {"x-delay": 10_000}, "delivery_mode": 2}


@pytest.mark.parametrize("place", PLACES)
def test_there_are_pages(waiting: Console, place: str) -> None:
    page = waiting.get(f"{place}/delayed?page=2&page_size=2&truncate=2")
    assert (bodies(page), page["page_count"], page["item_count"]) == (["in"], 2, 1)
    assert waiting.ask("GET", f"{place}/delayed?page=3&page_size=2").json["error"] == "page_out_of_range"


@pytest.mark.parametrize("place", PLACES)
def test_how_many_there_are_is_shown(waiting: Console, place: str) -> None:
    assert waiting.get(place)["messages_delayed"] == 3
    kind = place.split("/")[1]
    assert [each["messages_delayed"] for each in waiting.get(f"/{kind}") if place.endswith(f"/{each['name']}")] == [3]


@pytest.mark.parametrize("place", PLACES)
def test_one_is_cancelled(waiting: Console, place: str) -> None:
    position = waiting.get(f"{place}/delayed")["items"][1]["position"]
    waiting.delete(f"{place}/delayed/{position}")
    assert bodies(waiting.get(f"{place}/delayed")) == ["in 10", "in 30"]
    assert waiting.get(place)["messages_delayed"] == 2
    assert waiting.ask("DELETE", f"{place}/delayed/{position}").status == 404


@pytest.mark.parametrize("place", PLACES)
def test_all_are_cancelled(waiting: Console, place: str) -> None:
    waiting.delete(f"{place}/delayed")
    page = waiting.get(f"{place}/delayed")
    assert (page["items"], page["total_count"], page["page_count"]) == ([], 0, 0)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("position", ["x", "-1", "1.5", "99999999999999999999999"])
def test_a_position_that_is_none_is_not_found(waiting: Console, place: str, position: str) -> None:
    assert waiting.ask("DELETE", f"{place}/delayed/{position}").status == 404
    assert waiting.get(place)["messages_delayed"] == 3


@pytest.mark.parametrize("place", ["/queues/%2F/plain", "/exchanges/%2F/amq.direct"])
def test_where_nothing_is_held_back_the_list_is_empty(console: Console, place: str) -> None:
    console.put("/queues/%2F/plain", {})
    assert console.get(f"{place}/delayed")["items"] == []
    assert console.ask("DELETE", f"{place}/delayed/1").status == 404
    console.delete(f"{place}/delayed")


@pytest.mark.parametrize("place", PLACES)
def test_who_may_not_read_may_neither_look_nor_cancel(waiting: Console, place: str) -> None:
    waiting.gateway.add_user("writer", "writer", "/", (".*", ".*", "^$"), "management")
    for method in ("GET", "DELETE"):
        answer = waiting.ask(method, f"{place}/delayed", user="writer")
        assert (answer.status, answer.json["error"]) == (401, "not_authorised")
    assert waiting.get(place)["messages_delayed"] == 3


@pytest.mark.parametrize("place", ["/queues/%2F/nope", "/exchanges/%2F/nope", "/queues/nope/orders"])
def test_a_place_that_is_not_there(waiting: Console, place: str) -> None:
    assert waiting.ask("GET", f"{place}/delayed").status == 404
    assert waiting.ask("DELETE", f"{place}/delayed").status == 404
