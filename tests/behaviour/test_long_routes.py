"""A route past very many bindings is found in slices, whether or not any of them matches."""

from collections.abc import Callable, Iterator
from itertools import combinations, product

import pytest
from pamqp import commands

from gateway.api import Selector
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from gateway_exchanges import headers_index
from tests.behaviour.wide_letters import run_turns
from tests.clocks import TickingClock, TurnClock
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import publish, wire

ORIGIN = Origin("client -> broker", 1, "guest", "amqp091")
WORDS = "abcdefghijklm"
NAMES = [f"h{number}" for number in range(14)]
ALL_HEADERS: dict[str, Value] = dict.fromkeys(NAMES, 1)


def bind_headers(vhost: VirtualHost, exchange: Exchange) -> None:
    """Bind with different rules that share all their requirements; all of them need the first header."""
    for size in range(1, len(NAMES)):
        for names in combinations(NAMES[1:], size):
            vhost.bind(exchange, vhost.queue("q"), "", {NAMES[0]: 1, **dict.fromkeys(names, 1)})


def bind_selectors(vhost: VirtualHost, exchange: Exchange) -> None:
    for number in range(4000):
        selector = f"price > {number} AND h0 = 1"
        vhost.bind(exchange, vhost.queue("q"), str(number), {"x-jms-selector": selector})


def bind_patterns(vhost: VirtualHost, exchange: Exchange) -> None:
    for places in product((False, True), repeat=len(WORDS)):
        pattern = ".".join("*" if any_word else word for any_word, word in zip(places, WORDS, strict=True))
        vhost.bind(exchange, vhost.queue("q"), pattern)


MATCHING = {
    "headers": ("", ALL_HEADERS),
    "x-jms-topic": ("", {"price": 10_000, "h0": 1}),
    "topic": (".".join(WORDS), {}),
}
#: As much work, and no match.
UNMATCHED: dict[str, tuple[str, dict[str, Value]]] = {
    "headers": ("", dict.fromkeys(NAMES[1:], 1)),
    "x-jms-topic": ("", {"price": 10_000, "h0": 2}),
}
BIND: dict[str, Callable[[VirtualHost, Exchange], None]] = {
    "headers": bind_headers,
    "x-jms-topic": bind_selectors,
    "topic": bind_patterns,
}


@pytest.fixture(params=sorted(BIND))
def type_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def broker(type_name: str) -> MemoryBroker:
    return broker_with(type_name)


def broker_with(type_name: str) -> MemoryBroker:
    """Return a broker whose exchange ``x`` has thousands of bindings of one queue, and an alternate exchange."""
    broker = MemoryBroker(clock=TurnClock())
    vhost = broker.vhost
    vhost.declare_queue("q", is_durable=True)
    vhost.bind(vhost.declare_exchange("spare", "fanout"), vhost.declare_queue("unmatched"), "")
    exchange = vhost.declare_exchange("x", type_name, arguments={"alternate-exchange": "spare"})
    BIND[type_name](vhost, exchange)
    run_turns(broker, lambda: 0)
    return broker


def send(broker: MemoryBroker, key: str, values: dict[str, Value]) -> Verdict:
    message = Message("x", key, header_of(is_persistent=True, headers=values), b"m")
    return broker.vhost.publish(broker.vhost.exchange("x"), message, ORIGIN)


def taken(broker: MemoryBroker) -> tuple[int, int]:
    return len(broker.vhost.queue("q")), len(broker.vhost.queue("unmatched"))


def test_matches_are_found_in_later_turns(broker: MemoryBroker, type_name: str) -> None:
    assert send(broker, *MATCHING[type_name]) in (Verdict.TAKEN, Verdict.UNDECIDED)
    work = broker.kernel.journal.budget.take_pending()
    assert work is not None
    assert taken(broker) == (0, 0)
    run_turns(broker, lambda: 0)
    assert taken(broker) == (1, 0)
    assert (work.is_done, work.is_unrouted) == (True, False)


@pytest.mark.parametrize("type_name", sorted(UNMATCHED), indirect=True)
def test_the_alternate_exchange_gets_a_message_that_turns_out_to_match_nothing(
    broker: MemoryBroker, type_name: str
) -> None:
    assert send(broker, *UNMATCHED[type_name]) is Verdict.UNDECIDED
    run_turns(broker, lambda: 0)
    assert taken(broker) == (0, 1)


@pytest.mark.parametrize("type_name", sorted(UNMATCHED), indirect=True)
def test_a_message_that_turns_out_to_match_nothing_is_unroutable(broker: MemoryBroker, type_name: str) -> None:
    broker.vhost.delete_exchange("spare")
    run_turns(broker, lambda: 0)
    assert send(broker, *UNMATCHED[type_name]) is Verdict.UNDECIDED
    work = broker.kernel.journal.budget.take_pending()
    assert work is not None
    run_turns(broker, lambda: 0)
    assert work.is_unrouted
    assert broker.vhost.traffic.by_protocol["amqp091"].unroutable == 1


def test_bindings_may_change_meanwhile(broker: MemoryBroker, type_name: str) -> None:
    vhost = broker.vhost
    bindings = list(vhost.bindings.of(vhost.exchange("x")))
    send(broker, *MATCHING[type_name])
    assert isinstance(broker.clock, TurnClock)
    while not taken(broker)[0]:
        for binding in bindings[:3]:
            vhost.bindings.remove(binding)
        del bindings[:3]
        assert broker.clock.turn()
    run_turns(broker, lambda: 0)
    assert taken(broker) == (1, 0)


def test_a_dead_letter_past_very_many_bindings_is_published_in_slices(broker: MemoryBroker, type_name: str) -> None:
    send(broker, *MATCHING[type_name])
    run_turns(broker, lambda: 0)
    broker.vhost._router.forget()
    broker.vhost.declare_queue("source", arguments={"x-dead-letter-exchange": "x", "x-max-length": 0})
    key, values = MATCHING[type_name]
    if type_name == "topic":
        broker.vhost.bind(broker.vhost.exchange("amq.direct"), broker.vhost.queue("source"), key)
    message = Message("", key or "source", header_of(headers=values), b"letter")
    exchange = broker.vhost.exchange("amq.direct" if key else "")
    broker.vhost.publish(exchange, message, ORIGIN)
    assert taken(broker) == (1, 0)
    run_turns(broker, lambda: 0)
    assert taken(broker) == (2, 0)


def checks_a_turn(broker: MemoryBroker, counts: list[int]) -> Iterator[int]:
    """Yield the number of checks that each turn makes, from that of the publish on."""
    assert isinstance(broker.clock, TurnClock)
    yield len(counts)
    while True:
        before = len(counts)
        if not broker.clock.turn():
            return
        yield len(counts) - before


@pytest.mark.source
def test_a_turn_examines_some_shapes_of_a_headers_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with("headers")
    counts: list[int] = []
    matches = headers_index._Shape.matches
    monkeypatch.setattr(headers_index._Shape, "matches", lambda shape, given: counts.append(1) or matches(shape, given))
    send(broker, *UNMATCHED["headers"])
    made = list(checks_a_turn(broker, counts))
    assert sum(made) > 4000
    assert max(made) <= 1024


def test_a_turn_evaluates_some_selectors(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with("x-jms-topic")
    counts: list[int] = []
    matches = Selector.matches
    monkeypatch.setattr(Selector, "matches", lambda each, given: counts.append(1) or matches(each, given))
    send(broker, *UNMATCHED["x-jms-topic"])
    made = list(checks_a_turn(broker, counts))
    assert sum(made) == 4000
    assert max(made) <= 512


def test_a_mandatory_message_that_turns_out_to_match_nothing_is_returned_before_its_confirm(
    gateway: Gateway, clock: TickingClock
) -> None:
    gateway.vhost.declare_queue("q")
    bind_headers(gateway.vhost, gateway.vhost.declare_exchange("x", "headers"))
    gateway.settle()
    peer = gateway.connect()
    peer.send(commands.Confirm.Select())
    peer.receive()
    properties = {"headers": dict.fromkeys(NAMES[1:], 1)}
    peer.io.take(wire(publish("x", "", mandatory=True, **properties)))
    assert peer.receive() == []
    clock.advance(0)
    gateway.turn.go_on()
    received = [line.split("(")[0] for line in peer.receive()]
    assert [line for line in received if line.startswith("Basic")] == ["Basic.Return", "Basic.Ack"]
