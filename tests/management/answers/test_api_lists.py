"""Listings: paging, filters, order and columns."""

from typing import Any

import pytest

from gateway.access import Principal
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.management.http.call import Call
from gateway.management.views.queue_sorting import sort_value
from gateway.management.views.queues import queue_view
from gateway.testing import Recipient
from tests.management.console import Console


@pytest.fixture
def full(console: Console) -> Console:
    for name, waiting in (("apple", 3), ("banana", 1), ("cherry", 2), ("Date", 0)):
        console.put(f"/queues/%2F/{name}", {})
        for _ in range(waiting):
            message = {"properties": {}, "routing_key": name, "payload": "x", "payload_encoding": "string"}
            console.post("/exchanges/%2F/amq.default/publish", message)
    return console


PAGES = [
    ("page=1&page_size=2", ["Date", "apple"], (4, 4, 2, 2)),
    ("page=2&page_size=2", ["banana", "cherry"], (4, 4, 2, 2)),
    ("page=2&page_size=3", ["cherry"], (4, 4, 1, 2)),
    ("page=1&name=an", ["banana"], (4, 1, 1, 1)),
    ("page=1&name=A", ["Date", "apple", "banana"], (4, 3, 3, 1)),
    ("page=1&name=^(a|b)&use_regex=true", ["apple", "banana"], (4, 2, 2, 1)),
    ("page=1&name=^a", [], (4, 0, 0, 0)),
    ("page=1&sort=messages", ["Date", "banana", "cherry", "apple"], (4, 4, 4, 1)),
    ("page=1&page_size=2&sort=messages&sort_reverse=true", ["apple", "cherry"], (4, 4, 2, 2)),
    ("page=1&sort=name&sort_reverse=true", ["cherry", "banana", "apple", "Date"], (4, 4, 4, 1)),
]


@pytest.mark.parametrize(("query", "names", "counts"), PAGES)
def test_a_page_has_the_filtered_names(full: Console, query: str, names: list[str], counts: tuple[int, ...]) -> None:
    page = full.get(f"/queues?{query}")
    assert [queue["name"] for queue in page["items"]] == names
    assert tuple(page[key] for key in ("total_count", "filtered_count", "item_count", "page_count")) == counts


FIELDS = [
    "consumers", "message_bytes", "messages", "messages_ready", "messages_unacknowledged", "policy", "type", "vhost",
    "message_stats.publish_details.rate", "message_stats.deliver_get_details.rate", "auto_delete", "durable",
    "exclusive", "memory", "message_bytes_ready", "message_bytes_unacknowledged", "message_bytes_ram",
    "messages_persistent", "messages_ram",
]  # fmt: skip


@pytest.fixture
def varied(full: Console) -> Console:
    """Queues that differ in each of ``FIELDS``, and not in the order of their names."""
    vhost = full.gateway.vhost
    full.put("/queues/%2F/stream", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    full.put("/queues/%2F/lasting", {"durable": True})
    full.put("/vhosts/a-tenant", {})
    full.put("/queues/a-tenant/other", {"durable": True})
    full.put("/policies/%2F/some", {"pattern": "^[bc]", "definition": {"max-length": 9}})
    vhost.declare_queue("brief", is_auto_delete=True)
    vhost.declare_queue("exclusive", owner=object())
    list(full.statistics.sample())
    for name in ("apple", "apple", "cherry", "lasting"):
        properties = {"delivery_mode": 2}
        message = {"properties": properties, "routing_key": name, "payload": "xyz", "payload_encoding": "string"}
        full.post("/exchanges/%2F/amq.default/publish", message)
    Recipient().consume(vhost.queue("banana"), prefetch=1)
    list(full.statistics.sample())
    return full


@pytest.mark.parametrize("field", FIELDS)
def test_the_order_is_that_of_the_values_in_the_list(varied: Console, field: str) -> None:
    call = Call(varied.context, Principal("guest", frozenset({"administrator"})), {})
    value = sort_value(call, field)
    assert value is not None

    def shown(view: Any) -> Any:
        for part in field.split("."):
            view = view.get(part) if isinstance(view, dict) else None
        return view

    queues = [queue for vhost in varied.context.broker.vhost_by_name.values() for queue in vhost.queue_by_name.values()]
    assert [value(queue) for queue in queues] == [shown(queue_view(call, queue)) for queue in queues]
    assert len({value(queue) for queue in queues}) > 1

    def rank(queue: QueueLike) -> tuple[bool, Any, str, str]:  # no value comes first, equal ones by vhost and name
        found = value(queue)
        return found is not None, 0 if found is None else found, queue.vhost_name, queue.name

    names = [queue.name for queue in sorted(queues, key=rank)]
    for path in (f"/queues?sort={field}", f"/queues?page=1&sort={field}"):
        for expected, reverse in ((names, ""), (names[::-1], "&sort_reverse=true")):
            found = varied.get(path + reverse)
            assert [queue["name"] for queue in (found["items"] if "page" in path else found)] == expected


WRONG = [
    ("page=x", "bad_request", "Pagination parameters are invalid"),
    ("page=1&name=(a&use_regex=true", "bad_request", "'name': invalid regular expression '(a': missing ): (a"),
    ("page=1&name=(.{999}){999}&use_regex=true", "bad_request",
     "'name': invalid regular expression '(.{999}){999}': invalid repetition size: {999}"),
    ("page=1&page_size=501", "invalid_pagination_parameters",
     "Invalid pagination parameters: page number 1, page size 501"),
    ("page=9", "page_out_of_range", "Page out of range, page: 9 page size: 100, len: 4"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "error", "reason"), WRONG)
def test_an_invalid_page_is_refused(full: Console, query: str, error: str, reason: str) -> None:
    assert full.ask("GET", f"/queues?{query}").result == (400, {"error": error, "reason": reason})


def test_a_pattern_that_would_backtrack_is_matched_in_linear_time(full: Console) -> None:
    long = f"{'a' * 200}!"
    full.put(f"/queues/%2F/{long}", {})
    found = full.get("/queues?page=1&name=(a|aa)%2B$&use_regex=true")["items"]
    assert long not in [queue["name"] for queue in found]


def test_without_use_regex_a_name_is_matched_as_text(full: Console) -> None:
    full.put(f"/queues/%2F/{'a' * 200}!", {})
    assert full.get("/queues?page=1&name=(a|aa)%2B$")["items"] == []


COLUMNS: list[Any] = [
    ("columns=name", {"name": "apple"}),
    ("columns=name,message_stats.publish", {"name": "apple", "message_stats": {"publish": 3}}),
    ("columns=nope", {}),
    ("columns=policy", {"policy": None}),
]


@pytest.mark.parametrize(("query", "fields"), COLUMNS)
def test_columns_select_fields(full: Console, query: str, fields: object) -> None:
    assert full.get(f"/queues?{query}")[1] == fields
    assert full.get(f"/queues/%2F/apple?{query}") == fields


def test_listings_without_statistics_have_fewer_fields(full: Console) -> None:
    short = full.get("/queues?disable_stats=true")[1]
    assert set(short) == {
        "arguments", "auto_delete", "durable", "exclusive", "name", "node", "state", "type", "vhost",
    }  # fmt: skip
    with_totals = full.get("/queues?disable_stats=true&enable_queue_totals=true")[1]
    assert (with_totals["messages"], with_totals["messages_ready"], with_totals["messages_unacknowledged"]) == (3, 3, 0)


def test_the_order_is_by_virtual_host_and_name(full: Console) -> None:
    full.put("/vhosts/a", {})
    full.put("/queues/a/zebra", {})
    names = [(queue["vhost"], queue["name"]) for queue in full.get("/queues")]
    assert names == sorted(names)
