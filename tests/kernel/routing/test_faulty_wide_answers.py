"""An answer of an exchange type with anything but queues and exchanges is a fault, also if it is found in slices."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from gateway.api import Destination, LongRoute, Message
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.testing import MemoryBroker
from gateway_exchanges.fanout import Fanout

WIDTH = MOST_QUEUES + 100


class WideFanout(Fanout):
    """A fanout that also answers something that is no destination, at two places."""

    def route(self, message: Message) -> Iterable[Destination]:
        found: list[Any] = list(super().route(message))
        return [*found[:10], "nonsense", *found[10:], 7]


class NothingBut(Fanout):
    """An exchange type whose long answer has no destination."""

    def route(self, message: Message) -> Iterable[Destination]:
        return LongRoute(self._found)

    def _found(self) -> Iterator[Any]:  # Any: not only destinations
        for _ in range(20):
            yield "nonsense"
            yield None


def broker_with(exchange_type: type[Fanout], monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    """Return a broker whose exchange ``x`` has this type, and ``spare`` as its alternate exchange."""
    broker = MemoryBroker()
    monkeypatch.setitem(broker.vhost.exchange_types, "fanout", exchange_type)  # type: ignore[arg-type]  # a dict
    broker.vhost.declare_exchange("x", "fanout", arguments={"alternate-exchange": "spare"})
    spare = broker.vhost.declare_exchange("spare", "topic")
    broker.vhost.bind(spare, broker.vhost.declare_queue("unrouted"), "#")
    return broker


def test_a_wrong_destination_among_very_many_is_one_fault_and_the_others_get_the_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_with(WideFanout, monkeypatch)
    source = broker.vhost.exchange("x")
    queues = [broker.vhost.declare_queue(f"q{number}") for number in range(WIDTH)]
    for queue in queues:
        broker.vhost.bind(source, queue, "")
    broker.publish("k", exchange="x")
    broker.clock.advance(1)
    assert [len(queue) for queue in queues] == [1] * WIDTH
    assert broker.kernel.faults.count_by_kind == {"route": 1}


def test_a_long_answer_without_a_destination_goes_to_the_alternate_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with(NothingBut, monkeypatch)
    broker.publish("k", exchange="x")
    broker.clock.advance(1)
    assert len(broker.vhost.queue("unrouted")) == 1
    assert broker.kernel.faults.count_by_kind == {"route": 1}
