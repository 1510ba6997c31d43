"""Delayed messages: on request of the publisher, and between two delivery attempts."""

from typing import Any

import pytest

from gateway.kernel.backlog.delay_index import PAUSE_MS
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import Scenario

EXCHANGES = [
    pytest.param("", id="a queue"),
    pytest.param("later", id="an exchange"),
]


def declare_delaying(scenario: Scenario, exchange: str, **arguments: Value) -> None:
    """Declare queue ``q``, with delays of its own or behind a delayed exchange."""
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    if exchange:
        scenario.queue("q", others)
        scenario.exchange(exchange, "x-delayed-message", "q", x_delayed_type="direct")
    else:
        scenario.queue("q", {"x-delayed-delivery": True, **others})


def send(scenario: Scenario, body: bytes, delay_ms: int, exchange: str, **properties: Any) -> None:  # Any: as Scenario
    assert scenario.publish(body, exchange=exchange, headers={"x-delay": delay_ms}, **properties) == [True]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_each_message_is_delivered_at_its_time(scenario: Scenario, exchange: str) -> None:
    declare_delaying(scenario, exchange)
    for delay_ms in (300, 100, 200):
        send(scenario, b"%d" % delay_ms, delay_ms, exchange)
    scenario.client.consume("q")
    arrived: list[tuple[int, bytes]] = []
    for now_ms in range(50, 400, 50):
        scenario.advance(50)
        arrived += [(now_ms, received.body) for received in scenario.client.received()]
    assert arrived == [(100, b"100"), (200, b"200"), (300, b"300")]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_restart_keeps_delayed_messages_and_their_times(scenario: Scenario, exchange: str) -> None:
    declare_delaying(scenario, exchange)
    send(scenario, b"early", 1000, exchange, delivery_mode=2)
    send(scenario, b"late", 5000, exchange, delivery_mode=2)
    send(scenario, b"transient", 1000, exchange, delivery_mode=1)
    scenario.advance(500)
    scenario.restart()
    assert scenario.ready() == 0
    scenario.advance(500)
    assert scenario.bodies() == [b"early"]
    scenario.restart()
    scenario.advance(3999)
    assert scenario.ready() == 0
    scenario.advance(1)
    assert scenario.bodies() == [b"late"]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_time_to_live_starts_when_the_delay_is_over(scenario: Scenario, exchange: str) -> None:
    declare_delaying(scenario, exchange)
    send(scenario, b"m", 1000, exchange, expiration="100")
    scenario.advance(1099)
    assert scenario.ready() == 1
    scenario.advance(1)
    assert scenario.ready() == 0


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_delayed_message_keeps_its_properties(scenario: Scenario, exchange: str) -> None:
    declare_delaying(scenario, exchange)
    send(scenario, b"m", 10, exchange, correlation_id="c", priority=3, delivery_mode=2)
    scenario.advance(10)
    received = scenario.get()
    assert (received.body, received.exchange, received.routing_key, received.redelivered) == (
        b"m",
        exchange,
        "q",
        False,
    )
    assert received.headers == {"x-delay": 10}
    assert received.properties["correlation_id"] == "c"


def test_delayed_messages_do_not_count_for_length_limits(scenario: Scenario) -> None:
    declare_delaying(scenario, "", x_max_length=1, x_overflow="reject-publish")
    send(scenario, b"later", 100, "")
    assert scenario.publish(b"now", b"too much") == [True, False]
    scenario.bodies()
    scenario.advance(100)
    assert scenario.bodies() == [b"later"]


def test_retries_follow_their_delays_and_end_in_a_dead_letter(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue(
        "q",
        {"x-retry-delays": [100, 1000], "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )
    scenario.publish(b"poison", delivery_mode=2)
    scenario.reject()
    scenario.advance(99)
    assert scenario.ready() == 0
    scenario.advance(1)
    scenario.reject()
    scenario.restart()
    scenario.advance(999)
    assert (scenario.ready(), scenario.ready("dead")) == (0, 0)
    scenario.advance(1)
    assert scenario.get().redelivered
    scenario.restart()
    scenario.reject()
    (dead,) = scenario.drain("dead")
    assert dead.died == [("q", "rejected", 1)]


def test_an_acknowledged_message_is_not_retried(scenario: Scenario) -> None:
    scenario.queue("q", {"x-retry-delays": [10, 10]})
    scenario.publish(b"m", delivery_mode=2)
    scenario.reject()
    scenario.advance(10)
    scenario.client.settle(scenario.get(), DeliveryOutcome.ACCEPTED)
    scenario.advance(1000)
    assert scenario.ready() == 0
    assert scenario.gateway.store.held_ids == frozenset()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-delayed-delivery", 1),
        ("x-retry-delays", 100),
        ("x-retry-delays", [1, "2"]),
        ("x-retry-delays", [1, -2]),
        ("x-expire-mode", "somewhere"),
        ("x-consumer-timeout", 0),
    ],
)
def test_invalid_values_are_refused(scenario: Scenario, name: str, value: Value) -> None:
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        scenario.queue("q", {name: value})


FULL: dict[str, Value] = {"x-max-length": 1, "x-overflow": "reject-publish"}


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_due_message_waits_while_the_queue_is_full(scenario: Scenario, exchange: str, delivery_mode: int) -> None:
    declare_delaying(scenario, exchange, **FULL)
    for number in range(3):
        send(scenario, b"%d" % number, 100, exchange, delivery_mode=delivery_mode)
    scenario.publish(b"before them")
    scenario.advance(100)
    assert (scenario.ready(), scenario.vhost.queue("q").delayed_count) == (1, 3)
    taken = scenario.bodies()
    for _ in range(3):
        scenario.advance(PAUSE_MS)
        taken += scenario.bodies()
    assert taken == [b"before them", b"0", b"1", b"2"]
    assert scenario.gateway.store.held_ids == frozenset()


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_due_message_that_waits_for_room_survives_a_restart(scenario: Scenario, exchange: str) -> None:
    declare_delaying(scenario, exchange, **FULL)
    send(scenario, b"late", 100, exchange, delivery_mode=2)
    scenario.publish(b"there", delivery_mode=2)
    scenario.advance(150)
    scenario.restart()
    scenario.advance(PAUSE_MS)
    assert scenario.ready() == 1
    assert scenario.bodies() == [b"there"]
    scenario.advance(PAUSE_MS)
    assert scenario.bodies() == [b"late"]


def test_many_waiting_messages_are_released_soon_after_there_is_room(scenario: Scenario) -> None:
    declare_delaying(scenario, "", **FULL)
    for number in range(1000):
        send(scenario, b"%d" % number, 100, "")
    scenario.publish(b"there")
    scenario.advance(1000)
    assert scenario.bodies() == [b"there"]
    scenario.client.consume("q")
    scenario.advance(PAUSE_MS)
    assert [received.body for received in scenario.client.received()] == [b"%d" % number for number in range(1000)]


def test_a_message_too_large_for_the_queue_does_not_block_others(scenario: Scenario) -> None:
    declare_delaying(scenario, "", x_max_length_bytes=5, x_overflow="reject-publish")
    send(scenario, b"too large", 100, "")
    send(scenario, b"small", 101, "")
    scenario.advance(101)
    assert scenario.bodies() == [b"small"]
    scenario.vhost.delete_queue(scenario.vhost.queue("q"), if_unused=True)
    scenario.advance(20_000)
    assert scenario.gateway.store.held_ids == frozenset()


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_a_due_message_is_dead_lettered_when_the_queue_is_full(
    scenario: Scenario, exchange: str, overflow: str
) -> None:
    scenario.queue("dead")
    declare_delaying(
        scenario,
        exchange,
        x_max_length=1,
        x_overflow=overflow,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
    )
    send(scenario, b"late", 100, exchange)
    scenario.publish(b"there")
    scenario.advance(100)
    (letter,) = scenario.drain("dead")
    assert (letter.body, letter.died) == (b"late", [("q", "maxlen", 1)])
    assert scenario.bodies() == [b"there"]
    scenario.advance(1000)
    assert (scenario.ready(), scenario.ready("dead")) == (0, 0)


def test_a_due_message_waits_only_for_the_full_queue(scenario: Scenario) -> None:
    scenario.queue("full", FULL)
    scenario.queue("open")
    scenario.exchange("later", "x-delayed-message", "full", "open", x_delayed_type="fanout")
    send(scenario, b"m", 100, "later")
    scenario.publish(b"there", to="full")
    scenario.advance(100)
    assert (scenario.bodies("open"), scenario.bodies("full")) == ([b"m"], [b"there"])
    scenario.advance(PAUSE_MS)
    assert (scenario.bodies("open"), scenario.bodies("full")) == ([], [b"m"])
