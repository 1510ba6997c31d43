"""The distance of messages and bindings in a federation: hops, circles, the headers of the way."""

from typing import Any

import pytest

from gateway.bridges.received_from import BOUND_FROM, RECEIVED_FROM, arrived, bound_onward, may_come, queue_headers

HERE = ("near", "/", "x")
UPSTREAM = ("far", "/")


def at(node: str, **more: Any) -> dict[str, Any]:
    return {"cluster-name": node, "vhost": "/", **more}


@pytest.mark.parametrize(
    ("way", "max_hops", "comes"),
    [
        ([], 1, True),
        (["b"], 1, False),
        (["b"], 2, True),
        (["near"], 5, False),
    ],
)
def test_a_message_makes_a_limited_number_of_hops_and_no_circle(way: list[str], max_hops: int, comes: bool) -> None:
    headers = {RECEIVED_FROM: [at(node) for node in way]} if way else None
    assert may_come(headers, max_hops, "near", "/") is comes


def test_the_latest_upstream_stands_first() -> None:
    headers = arrived({"own": 1, RECEIVED_FROM: [at("a")]}, at("b"))
    assert headers == {"own": 1, RECEIVED_FROM: [at("b"), at("a")]}


def test_a_header_of_a_client_that_is_no_list_is_replaced() -> None:
    assert arrived({RECEIVED_FROM: "x"}, at("b")) == {RECEIVED_FROM: [at("b")]}


def test_a_binding_goes_as_far_as_messages_would_come() -> None:
    first = bound_onward({"own": 1}, 2, HERE, UPSTREAM)
    assert first == {"own": 1, BOUND_FROM: [at("near", exchange="x", hops=2)]}
    second = bound_onward(first, 5, ("far", "/", "x"), ("next", "/"))
    assert second is not None
    assert [entry["hops"] for entry in second[BOUND_FROM]] == [1, 2]
    assert bound_onward(second, 5, ("next", "/", "x"), ("last", "/")) is None


def test_a_binding_does_not_return_to_where_it_came_from() -> None:
    assert bound_onward({BOUND_FROM: [at("far", exchange="x", hops=3)]}, 3, HERE, UPSTREAM) is None


def test_visits_of_a_queue_are_counted() -> None:
    entry = {"uri": "amqp://a", "virtual_host": "/", "queue": "q"}
    once = queue_headers({"CC": ["x"]}, "ex", "key", entry)
    assert (once["x-original-exchange"], once["x-original-routing-key"], once["x-original-cc"]) == ("ex", "key", ["x"])
    twice = queue_headers(once, "", "q", entry)
    assert twice["x-original-exchange"] == "ex"
    assert [each["visit-count"] for each in twice[RECEIVED_FROM]] == [2]
