"""Delayed messages over HTTP: listing and cancelling."""

from typing import Any

import pytest

from tests.management.console import Console

#: Time of the stopped clock of these tests, in milliseconds.
NOW_MS = 1_700_000_000_000

PLACES = ["/queues/%2F/orders", "/exchanges/%2F/later"]


@pytest.fixture
def delayed(console: Console) -> Console:
    """Three delayed messages in the queue ``orders``, and three in the exchange ``later``."""
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


@pytest.mark.parametrize("path", PLACES)
def test_the_earliest_message_is_listed_first(delayed: Console, path: str) -> None:
    page = delayed.get(f"{path}/delayed")
    assert bodies(page) == ["in 10", "in 20", "in 30"]
    assert (page["total_count"], page["page"], page["page_count"]) == (3, 1, 1)
    first = page["items"][0]
    assert (first["due_at_ms"], first["due_at"]) == (NOW_MS + 10_000, "2023-11-14T22:13:30.000+00:00")
    assert (first["routing_key"], first["payload_bytes"], first["payload_encoding"]) == ("orders", 5, "string")
    assert first["properties"] == {"headers": {"x-delay": 10_000}, "delivery_mode": 2}


@pytest.mark.parametrize("path", PLACES)
def test_the_listing_is_paged(delayed: Console, path: str) -> None:
    page = delayed.get(f"{path}/delayed?page=2&page_size=2&truncate=2")
    assert (bodies(page), page["page_count"], page["item_count"]) == (["in"], 2, 1)
    assert delayed.ask("GET", f"{path}/delayed?page=3&page_size=2").json["error"] == "page_out_of_range"


@pytest.mark.parametrize("path", PLACES)
def test_the_number_of_delayed_messages_is_shown(delayed: Console, path: str) -> None:
    assert delayed.get(path)["messages_delayed"] == 3
    kind = path.split("/")[1]
    assert [each["messages_delayed"] for each in delayed.get(f"/{kind}") if path.endswith(f"/{each['name']}")] == [3]


@pytest.mark.parametrize("path", PLACES)
def test_one_message_is_cancelled(delayed: Console, path: str) -> None:
    position = delayed.get(f"{path}/delayed")["items"][1]["position"]
    delayed.delete(f"{path}/delayed/{position}")
    assert bodies(delayed.get(f"{path}/delayed")) == ["in 10", "in 30"]
    assert delayed.get(path)["messages_delayed"] == 2
    assert delayed.ask("DELETE", f"{path}/delayed/{position}").status == 404


@pytest.mark.parametrize("path", PLACES)
def test_all_messages_are_cancelled(delayed: Console, path: str) -> None:
    delayed.delete(f"{path}/delayed")
    page = delayed.get(f"{path}/delayed")
    assert (page["items"], page["total_count"], page["page_count"]) == ([], 0, 0)


@pytest.mark.parametrize("path", PLACES)
@pytest.mark.parametrize("position", ["x", "-1", "1.5", "99999999999999999999999"])
def test_an_unknown_position_is_not_found(delayed: Console, path: str, position: str) -> None:
    assert delayed.ask("DELETE", f"{path}/delayed/{position}").status == 404
    assert delayed.get(path)["messages_delayed"] == 3


@pytest.mark.parametrize("path", ["/queues/%2F/plain", "/exchanges/%2F/amq.direct"])
def test_without_delayed_messages_the_list_is_empty(console: Console, path: str) -> None:
    console.put("/queues/%2F/plain", {})
    assert console.get(f"{path}/delayed")["items"] == []
    assert console.ask("DELETE", f"{path}/delayed/1").status == 404
    console.delete(f"{path}/delayed")


@pytest.mark.parametrize("path", PLACES)
def test_listing_and_cancelling_need_the_read_permission(delayed: Console, path: str) -> None:
    delayed.gateway.add_user("writer", "writer", "/", (".*", ".*", "^$"), "management")
    for method in ("GET", "DELETE"):
        answer = delayed.ask(method, f"{path}/delayed", user="writer")
        assert (answer.status, answer.json["error"]) == (401, "not_authorised")
    assert delayed.get(path)["messages_delayed"] == 3


@pytest.mark.parametrize("path", ["/queues/%2F/nope", "/exchanges/%2F/nope", "/queues/nope/orders"])
def test_an_unknown_queue_or_exchange_is_not_found(delayed: Console, path: str) -> None:
    assert delayed.ask("GET", f"{path}/delayed").status == 404
    assert delayed.ask("DELETE", f"{path}/delayed").status == 404
