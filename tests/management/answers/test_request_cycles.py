"""A request leaves no reference cycle: the garbage collector does not look at objects that have lived for a while."""

from collections.abc import Callable

import pytest

from tests.garbage import garbage_of
from tests.management.console import Console

ANY = {"configure": ".*", "write": ".*", "read": ".*"}

Act = Callable[[Console], object]

REQUESTS: dict[str, Act] = {
    "a change at once": lambda console: console.ask("PUT", "/permissions/%2F/guest", ANY),
    "a refused change": lambda console: console.ask("PUT", "/permissions/%2F/unknown", ANY),
    "a change of a password": lambda console: console.ask("PUT", "/users/worker", {"password": "secret", "tags": ""}),
    "a change in steps": lambda console: console.ask("DELETE", "/queues/%2F/orders"),
    "a refused change in steps": lambda console: console.ask("DELETE", "/queues/%2F/missing"),
    "a listing": lambda console: console.ask("GET", "/queues"),
    "a page of the audit record": lambda console: console.ask("GET", "/audit"),
    "a refused listing": lambda console: console.ask("GET", "/queues?page=9"),
}


@pytest.mark.parametrize("act", REQUESTS.values(), ids=REQUESTS)
def test_a_request_leaves_no_cycle(console: Console, act: Act) -> None:
    act(console)  # the first one may create what is kept
    console.put("/queues/%2F/orders", {})
    assert garbage_of(lambda: act(console)) == []
