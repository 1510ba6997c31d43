"""Messages that wait: as their publisher asked, and between two tries."""

from typing import Any

import pytest

from gateway.kernel.backlog.delay_index import PAUSE_MS
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import Stage

PLACES = [
    pytest.param("", id="a queue"),
    pytest.param("later", id="an exchange"),
]


def arrange(stage: Stage, exchange: str, **arguments: Value) -> None:
    """Declare queue ``q``, delaying by itself or behind a delayed exchange."""
    others = {name.replace("_", "-"): value for name, value in arguments.items()}
    if exchange:
        stage.queue("q", others)
        stage.exchange(exchange, "x-delayed-message", "q", x_delayed_type="direct")
    else:
        stage.queue("q", {"x-delayed-delivery": True, **others})


def send(stage: Stage, body: bytes, delay_ms: int, exchange: str, **properties: Any) -> None:  # Any: as Stage.publish
    assert stage.publish(body, exchange=exchange, headers={"x-delay": delay_ms}, **properties) == [True]


@pytest.mark.parametrize("exchange", PLACES)
def test_each_message_is_delivered_at_its_time(stage: Stage, exchange: str) -> None:
    arrange(stage, exchange)
    for delay_ms in (300, 100, 200):
        send(stage, b"%d" % delay_ms, delay_ms, exchange)
    stage.client.consume("q")
    arrived: list[tuple[int, bytes]] = []
    for now_ms in range(50, 400, 50):
        stage.advance(50)
        arrived += [(now_ms, received.body) for received in stage.client.received()]
    assert arrived == [(100, b"100"), (200, b"200"), (300, b"300")]


@pytest.mark.parametrize("exchange", PLACES)
def test_a_restart_keeps_delayed_messages_and_their_times(stage: Stage, exchange: str) -> None:
    arrange(stage, exchange)
    send(stage, b"early", 1000, exchange, delivery_mode=2)
    send(stage, b"late", 5000, exchange, delivery_mode=2)
    send(stage, b"transient", 1000, exchange, delivery_mode=1)
    stage.advance(500)
    stage.restart()
    assert stage.ready() == 0
    stage.advance(500)
    assert stage.bodies() == [b"early"]
    stage.restart()
    stage.advance(3999)
    assert stage.ready() == 0
    stage.advance(1)
    assert stage.bodies() == [b"late"]


@pytest.mark.parametrize("exchange", PLACES)
def test_the_time_to_live_starts_when_the_delay_is_over(stage: Stage, exchange: str) -> None:
    arrange(stage, exchange)
    send(stage, b"m", 1000, exchange, expiration="100")
    stage.advance(1099)
    assert stage.ready() == 1
    stage.advance(1)
    assert stage.ready() == 0


@pytest.mark.parametrize("exchange", PLACES)
def test_a_delayed_message_keeps_its_properties(stage: Stage, exchange: str) -> None:
    arrange(stage, exchange)
    send(stage, b"m", 10, exchange, correlation_id="c", priority=3, delivery_mode=2)
    stage.advance(10)
    received = stage.get()
    assert (received.body, received.exchange, received.routing_key, received.redelivered) == (
        b"m",
        exchange,
        "q",
        False,
    )
    assert received.headers == {"x-delay": 10}
    assert received.properties["correlation_id"] == "c"


def test_delayed_messages_do_not_count_for_length_limits(stage: Stage) -> None:
    arrange(stage, "", x_max_length=1, x_overflow="reject-publish")
    send(stage, b"later", 100, "")
    assert stage.publish(b"now", b"too much") == [True, False]
    stage.bodies()
    stage.advance(100)
    assert stage.bodies() == [b"later"]


def test_retries_follow_their_delays_and_end_in_a_dead_letter(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue(
        "q",
        {"x-retry-delays": [100, 1000], "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )
    stage.publish(b"poison", delivery_mode=2)
    stage.reject()
    stage.advance(99)
    assert stage.ready() == 0
    stage.advance(1)
    stage.reject()
    stage.restart()
    stage.advance(999)
    assert (stage.ready(), stage.ready("dead")) == (0, 0)
    stage.advance(1)
    assert stage.get().redelivered
    stage.restart()
    stage.reject()
    (dead,) = stage.drain("dead")
    assert dead.died == [("q", "rejected", 1)]


def test_an_acknowledged_message_is_not_retried(stage: Stage) -> None:
    stage.queue("q", {"x-retry-delays": [10, 10]})
    stage.publish(b"m", delivery_mode=2)
    stage.reject()
    stage.advance(10)
    stage.client.settle(stage.get(), DeliveryOutcome.ACCEPTED)
    stage.advance(1000)
    assert stage.ready() == 0
    assert stage.gateway.store.held_ids == frozenset()


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
def test_invalid_values_are_refused(stage: Stage, name: str, value: Value) -> None:
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        stage.queue("q", {name: value})


FULL: dict[str, Value] = {"x-max-length": 1, "x-overflow": "reject-publish"}


@pytest.mark.parametrize("delivery_mode", [1, 2], ids=["transient", "persistent"])
@pytest.mark.parametrize("exchange", PLACES)
def test_a_due_message_waits_while_the_queue_is_full(stage: Stage, exchange: str, delivery_mode: int) -> None:
    arrange(stage, exchange, **FULL)
    for number in range(3):
        send(stage, b"%d" % number, 100, exchange, delivery_mode=delivery_mode)
    stage.publish(b"before them")
    stage.advance(100)
    assert (stage.ready(), len(stage.vhost.queue("q").delays or ())) == (1, 3)
    taken = stage.bodies()
    for _ in range(3):
        stage.advance(PAUSE_MS)
        taken += stage.bodies()
    assert taken == [b"before them", b"0", b"1", b"2"]
    assert stage.gateway.store.held_ids == frozenset()


@pytest.mark.parametrize("exchange", PLACES)
def test_a_due_message_that_waits_for_room_survives_a_restart(stage: Stage, exchange: str) -> None:
    arrange(stage, exchange, **FULL)
    send(stage, b"late", 100, exchange, delivery_mode=2)
    stage.publish(b"there", delivery_mode=2)
    stage.advance(150)
    stage.restart()
    stage.advance(PAUSE_MS)
    assert stage.ready() == 1
    assert stage.bodies() == [b"there"]
    stage.advance(PAUSE_MS)
    assert stage.bodies() == [b"late"]


def test_many_waiting_messages_are_released_soon_after_there_is_room(stage: Stage) -> None:
    arrange(stage, "", **FULL)
    for number in range(1000):
        send(stage, b"%d" % number, 100, "")
    stage.publish(b"there")
    stage.advance(1000)
    assert stage.bodies() == [b"there"]
    stage.client.consume("q")
    stage.advance(PAUSE_MS)
    assert [received.body for received in stage.client.received()] == [b"%d" % number for number in range(1000)]


def test_a_message_too_large_for_the_queue_does_not_block_others(stage: Stage) -> None:
    arrange(stage, "", x_max_length_bytes=5, x_overflow="reject-publish")
    send(stage, b"too large", 100, "")
    send(stage, b"small", 101, "")
    stage.advance(101)
    assert stage.bodies() == [b"small"]
    stage.vhost.delete_queue(stage.vhost.queue("q"), if_unused=True)
    stage.advance(20_000)
    assert stage.gateway.store.held_ids == frozenset()


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
@pytest.mark.parametrize("exchange", PLACES)
def test_a_due_message_is_dead_lettered_when_the_queue_is_full(stage: Stage, exchange: str, overflow: str) -> None:
    stage.queue("dead")
    arrange(
        stage,
        exchange,
        x_max_length=1,
        x_overflow=overflow,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key="dead",
    )
    send(stage, b"late", 100, exchange)
    stage.publish(b"there")
    stage.advance(100)
    (letter,) = stage.drain("dead")
    assert (letter.body, letter.died) == (b"late", [("q", "maxlen", 1)])
    assert stage.bodies() == [b"there"]
    stage.advance(1000)
    assert (stage.ready(), stage.ready("dead")) == (0, 0)


def test_a_due_message_waits_only_for_the_full_queue(stage: Stage) -> None:
    stage.queue("full", FULL)
    stage.queue("open")
    stage.exchange("later", "x-delayed-message", "full", "open", x_delayed_type="fanout")
    send(stage, b"m", 100, "later")
    stage.publish(b"there", to="full")
    stage.advance(100)
    assert (stage.bodies("open"), stage.bodies("full")) == ([b"m"], [b"there"])
    stage.advance(PAUSE_MS)
    assert (stage.bodies("open"), stage.bodies("full")) == ([], [b"m"])
