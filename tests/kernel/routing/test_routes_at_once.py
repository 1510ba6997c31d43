"""A message whose exchange type selects one queue is routed without a walk, with the same result."""

from collections.abc import Callable

import pytest

from gateway.api import Destination, Message
from gateway.testing import MemoryBroker
from gateway_exchanges.fanout import Fanout


class Counting(Fanout):
    """A fanout that counts the calls of ``route``, and calls ``wait`` in each."""

    routes_by_key = False
    calls = 0
    wait: Callable[[], None] = staticmethod(lambda: None)

    def route(self, message: Message) -> tuple[Destination, ...]:
        Counting.calls += 1
        Counting.wait()
        return super().route(message)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> MemoryBroker:
    broker = MemoryBroker()
    monkeypatch.setitem(broker.vhost.exchange_types, "fanout", Counting)  # type: ignore[arg-type]  # a dict
    monkeypatch.setattr(Counting, "calls", 0)
    broker.vhost.declare_exchange("x", "fanout", arguments={"alternate-exchange": "spare"})
    spare = broker.vhost.declare_exchange("spare", "topic")
    broker.vhost.bind(spare, broker.vhost.declare_queue("unrouted"), "#")
    return broker


@pytest.mark.parametrize(
    ("queues", "exchanges", "expected"),
    [
        pytest.param(0, 0, {"unrouted": 1}, id="none: the alternate exchange"),
        pytest.param(1, 0, {"q0": 1}, id="one queue"),
        pytest.param(2, 0, {"q0": 1, "q1": 1}, id="two queues"),
        pytest.param(0, 1, {"behind": 1}, id="one exchange"),
        pytest.param(1, 1, {"q0": 1, "behind": 1}, id="a queue and an exchange"),
    ],
)
def test_a_type_is_asked_once_whatever_it_selects(
    broker: MemoryBroker, queues: int, exchanges: int, expected: dict[str, int]
) -> None:
    vhost = broker.vhost
    source = vhost.exchange("x")
    for number in range(queues):
        vhost.bind(source, vhost.declare_queue(f"q{number}"), "")
    for _ in range(exchanges):
        other = vhost.declare_exchange("other", "direct")
        vhost.bind(other, vhost.declare_queue("behind"), "k")
        vhost.bind(source, other, "")
    broker.publish("k", exchange="x")
    assert Counting.calls == 1
    assert {name: len(queue) for name, queue in vhost.queue_by_name.items() if len(queue)} == expected


def test_a_slow_type_that_selects_one_queue_is_reported(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[str] = []
    broker.vhost.bind(broker.vhost.exchange("x"), broker.vhost.declare_queue("q"), "")
    broker.kernel.journal.budget.on_slow = lambda cause, seconds: reports.append(cause)
    monkeypatch.setattr(Counting, "wait", staticmethod(lambda: broker.clock.advance(0.02)))
    broker.publish("k", exchange="x")
    assert reports == ["routing in exchange 'x' of type fanout, plugin 'exchange-fanout', vhost '/'"]
