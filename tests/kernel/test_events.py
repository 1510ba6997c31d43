"""Events reach the listeners of their kind; frequent ones are emitted only while a listener has a use for them."""

import pytest

from gateway.kernel.events import Event, Events


def test_a_listener_gets_the_events_of_its_kinds_and_one_without_kinds_gets_all() -> None:
    events, got = Events(), list[tuple[str, str]]()
    events.subscribe(lambda event: got.append(("all", event.name)))
    events.subscribe(lambda event: got.append(("some", event.name)), "queue", "vhost")
    for name in ("queue.created", "exchange.created", "vhost.deleted"):
        events.emit(Event(name))
    assert got == [
        ("all", "queue.created"),
        ("some", "queue.created"),
        ("all", "exchange.created"),
        ("all", "vhost.deleted"),
        ("some", "vhost.deleted"),
    ]


def test_a_listener_that_subscribes_later_gets_later_events() -> None:
    events, got = Events(), list[str]()
    events.emit(Event("queue.created"))
    events.subscribe(lambda event: got.append(event.name), "queue")
    events.emit(Event("queue.deleted"))
    assert got == ["queue.deleted"]


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_kind_is_awaited_while_a_listener_of_it_has_a_use_for_it(is_wanted: bool) -> None:
    events = Events()
    assert not events.is_awaited("session")
    events.subscribe(lambda event: None, "queue")
    events.subscribe(lambda event: None, wants=lambda kind: is_wanted and kind == "session")
    assert events.is_awaited("session") is is_wanted
    assert not events.is_awaited("exchange")
    assert events.is_awaited("queue")
