"""Kept messages and windows of deduplication over HTTP."""

from typing import Any

import pytest

from gateway.kernel.vhosts.virtual_host import VirtualHost
from tests.management.console import Console

WINDOWS = ["/queues/%2F/orders/deduplication", "/exchanges/%2F/once/deduplication"]


@pytest.fixture
def keeping(console: Console) -> Console:
    """Two prices in the exchange ``prices``, and a history of three lines in ``room``."""
    console.put("/exchanges/%2F/prices", {"type": "x-lvc", "durable": True})
    console.put("/exchanges/%2F/room", {"type": "x-recent-history", "durable": True})
    for key, price in (("EUR", "1.1"), ("GBP", "0.9"), ("EUR", "1.2")):
        publish(console, "prices", key, price)
        publish(console, "room", key, price)
    return console


@pytest.fixture
def remembering(console: Console) -> Console:
    """The keys 1 and 2 in the window of the queue ``orders``, and in that of the exchange ``once``."""
    console.put("/queues/%2F/orders", {"durable": True, "arguments": {"x-message-deduplication": True}})
    arguments = {"x-cache-size": 5, "x-cache-ttl": 60_000}
    console.put("/exchanges/%2F/once", {"type": "x-message-deduplication", "durable": True, "arguments": arguments})
    console.put("/queues/%2F/copies", {"durable": True})
    console.post("/bindings/%2F/e/once/q/copies", {})
    for key in (1, 1, 2):
        repeat(console, key)
    return console


def publish(console: Console, exchange: str, key: str, body: str, headers: dict[str, int] | None = None) -> None:
    properties = {"delivery_mode": 2, "headers": headers or {}}
    fields = {"properties": properties, "routing_key": key, "payload": body, "payload_encoding": "string"}
    console.post(f"/exchanges/%2F/{exchange}/publish", fields)


def repeat(console: Console, key: int) -> None:
    for exchange in ("amq.default", "once"):
        publish(console, exchange, "orders", "body", {"x-deduplication-header": key})


def rows(page: Any) -> list[tuple[str, str]]:
    return [(each["key"], each["payload"]) for each in page["items"]]


def restarted(console: Console) -> VirtualHost:
    """Return the virtual host as the next start recovers it."""
    console.gateway.settle()
    return type(console.gateway)(store=console.gateway.store.reopened()).vhost


def test_the_oldest_kept_message_is_listed_first(keeping: Console) -> None:
    page = keeping.get("/exchanges/%2F/prices/kept")
    assert rows(page) == [("GBP", "0.9"), ("EUR", "1.2")]
    assert (page["total_count"], page["page_count"]) == (2, 1)
    assert (page["items"][0]["routing_key"], page["items"][0]["properties"]) == ("GBP", {"delivery_mode": 2})
    assert rows(keeping.get("/exchanges/%2F/room/kept")) == [("0", "1.1"), ("1", "0.9"), ("2", "1.2")]


def test_the_list_of_kept_messages_is_paged_and_bodies_are_cut(keeping: Console) -> None:
    page = keeping.get("/exchanges/%2F/room/kept?page=2&page_size=2&truncate=1")
    assert (rows(page), page["page_count"], page["item_count"]) == ([("2", "1")], 2, 1)
    assert keeping.ask("GET", "/exchanges/%2F/room/kept?page=3&page_size=2").json["error"] == "page_out_of_range"


def test_one_kept_message_is_dropped(keeping: Console) -> None:
    keeping.delete("/exchanges/%2F/prices/kept?key=EUR")
    assert rows(keeping.get("/exchanges/%2F/prices/kept")) == [("GBP", "0.9")]
    assert keeping.ask("DELETE", "/exchanges/%2F/prices/kept?key=EUR").status == 404


def test_a_message_that_is_kept_under_an_empty_key_can_be_dropped(keeping: Console) -> None:
    publish(keeping, "prices", "", "nothing")
    keeping.delete("/exchanges/%2F/prices/kept?key=")
    assert [key for key, _ in rows(keeping.get("/exchanges/%2F/prices/kept"))] == ["GBP", "EUR"]


def test_a_misspelled_key_drops_nothing(keeping: Console) -> None:
    answer = keeping.ask("DELETE", "/exchanges/%2F/prices/kept?kye=EUR")
    assert (answer.status, answer.json["reason"][:33]) == (400, "unknown field 'kye' of the query:")
    assert len(keeping.get("/exchanges/%2F/prices/kept")["items"]) == 2


def test_all_kept_messages_are_dropped_and_later_ones_are_kept(keeping: Console) -> None:
    keeping.delete("/exchanges/%2F/room/kept")
    assert keeping.get("/exchanges/%2F/room/kept")["items"] == []
    publish(keeping, "room", "", "new")
    assert rows(keeping.get("/exchanges/%2F/room/kept")) == [("0", "new")]


def test_a_queue_that_is_bound_after_a_drop_gets_no_old_message(keeping: Console) -> None:
    keeping.delete("/exchanges/%2F/room/kept")
    keeping.put("/queues/%2F/late", {})
    keeping.post("/bindings/%2F/e/room/q/late", {})
    assert len(keeping.gateway.vhost.queue("late")) == 0


def test_dropped_messages_stay_dropped_after_a_restart(keeping: Console) -> None:
    keeping.delete("/exchanges/%2F/room/kept")
    vhost = restarted(keeping)
    assert (list(vhost.keeping.kept_by("room")), vhost.keeping.kept_by("prices").names) == ([], ["GBP", "EUR"])


def test_an_exchange_that_keeps_nothing_has_an_empty_list(console: Console) -> None:
    assert console.get("/exchanges/%2F/amq.direct/kept")["items"] == []
    console.delete("/exchanges/%2F/amq.direct/kept")
    assert console.ask("DELETE", "/exchanges/%2F/amq.direct/kept?key=x").status == 404
    assert console.ask("GET", "/exchanges/%2F/nope/kept").status == 404


def test_the_windows_of_a_virtual_host_are_listed_with_their_sizes(remembering: Console) -> None:
    common = {"vhost": "/", "keys": 2, "durable": True}
    exchange = {"kind": "exchange", "name": "once", "size": 5, "ttl_ms": 60_000}
    queue = {"kind": "queue", "name": "orders", "size": 10_000, "ttl_ms": None}
    assert remembering.get("/deduplication/%2F") == [exchange | common, queue | common]
    assert [remembering.get(path)["keys"] for path in WINDOWS] == [2, 2]


def test_a_message_is_new_once_more_after_its_window_was_cleared(remembering: Console) -> None:
    vhost = remembering.gateway.vhost
    assert (len(vhost.queue("orders")), len(vhost.queue("copies"))) == (2, 2)
    for path in WINDOWS:
        remembering.delete(path)
    assert [remembering.get(path)["keys"] for path in WINDOWS] == [0, 0]
    repeat(remembering, 1)
    assert (len(vhost.queue("orders")), len(vhost.queue("copies"))) == (3, 3)


def test_a_cleared_window_is_empty_after_a_restart(remembering: Console) -> None:
    remembering.delete(WINDOWS[0])
    windows = restarted(remembering).deduplication_caches.all()
    assert {window.name: len(window) for window in windows} == {"orders": 0, "once": 2}


def test_what_does_not_deduplicate_has_no_window(console: Console) -> None:
    console.put("/queues/%2F/plain", {})
    for path in ("/queues/%2F/plain", "/exchanges/%2F/amq.direct", "/queues/%2F/nope", "/exchanges/%2F/nope"):
        for method in ("GET", "DELETE"):
            assert console.ask(method, f"{path}/deduplication").status == 404
    assert console.get("/deduplication/%2F") == []


@pytest.mark.parametrize("path", [*WINDOWS, "/exchanges/%2F/once/kept"])
def test_the_read_permission_is_needed(remembering: Console, path: str) -> None:
    remembering.gateway.add_user("writer", "writer", "/", (".*", ".*", "^$"), "management")
    for method in ("GET", "DELETE"):
        answer = remembering.ask(method, path, user="writer")
        assert (answer.status, answer.json["error"]) == (401, "not_authorised")
    assert remembering.get(WINDOWS[0])["keys"] == 2


def test_what_is_dropped_and_cleared_is_audited(remembering: Console) -> None:
    remembering.put("/exchanges/%2F/prices", {"type": "x-lvc"})
    publish(remembering, "prices", "EUR", "1")
    remembering.delete("/exchanges/%2F/prices/kept?key=EUR")
    remembering.delete(WINDOWS[0])
    audited = [(each["action"], each["subject"], each["details"]) for each in remembering.get("/audit")["items"][:2]]
    dropped = "kept_message.deleted", "prices", {"messages": 1, "key": "EUR"}
    assert audited == [("deduplication.cleared", "orders", {"keys": 2}), dropped]
