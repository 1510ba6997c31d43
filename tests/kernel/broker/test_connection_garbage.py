"""Faults of plugins and readers that leave a stream leave no reference cycles, which would keep connections in memory.

Found by the simulation, which counts the connections that live after all clients have left.
"""

import gc
from collections.abc import Callable, Iterable

import pytest

from gateway.api import Destination, Origin
from gateway.kernel.archives.tracing import VhostTracing
from gateway.kernel.messages.message import Message
from gateway.kernel.slow_calls import SlowCalls
from gateway.kernel.streams.cursor import Cursor
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient, header_of
from gateway_exchanges.fanout import Fanout
from tests.garbage import collect, left_by

ORIGIN = Origin("127.0.0.1:1 -> 127.0.0.1:2", 1, "guest", "AMQP 0-9-1")


class FailingTracer:
    """A tracer that raises."""

    def published(self, message: Message, queues: object, origin: Origin) -> None:
        raise ValueError("no price")

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        pass


class FailingType(Fanout):
    """An exchange type that raises."""

    routes_by_key = False

    def route(self, message: Message) -> Iterable[Destination]:
        raise ValueError("no route")


def frames_left_by(act: Callable[[], object]) -> list[str]:
    """Return the functions whose frames an action leaves in cycles."""
    act()  # what is created once is no garbage
    return [each.f_code.co_name for each in left_by(_discarding(act)) if type(each).__name__ == "frame"]


def _discarding(act: Callable[[], object]) -> Callable[[], None]:
    def call() -> None:
        act()

    return call


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def test_a_tracer_that_raises_leaves_no_cycle(broker: MemoryBroker) -> None:
    vhost, faults = broker.vhost, broker.kernel.faults
    slow_calls = SlowCalls(broker.kernel.journal.budget, faults)
    vhost.tracing = VhostTracing("/", (FailingTracer(),), vhost.trace_events, faults, slow_calls)
    message = Message("", "none", header_of(), b"")
    assert frames_left_by(lambda: vhost.publish(vhost.default_exchange, message, ORIGIN)) == []
    assert faults.count_by_kind["tracer"] == 2


def test_an_exchange_type_that_raises_leaves_no_cycle(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(broker.vhost.exchange_types, "fanout", FailingType)  # type: ignore[arg-type]  # a dict
    broker.vhost.declare_exchange("x", "fanout")
    assert frames_left_by(lambda: broker.publish("k", exchange="x")) == []
    assert broker.kernel.faults.count_by_kind["route"] == 2


def test_a_reader_that_leaves_within_a_slice_of_a_stream_leaves_no_cycle(broker: MemoryBroker) -> None:
    stream = broker.vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    assert isinstance(stream, Stream)

    def read_some() -> None:
        recipient = Recipient()
        recipient.consume(stream, prefetch=3, arguments={"x-stream-offset": "next"})
        for _ in range(20):
            broker.publish("s", b"body")
        broker.commit()
        broker.advance(0)
        assert len(recipient.received) == 3
        recipient.cancel(recipient.consumers[0])

    collect()
    gc.disable()  # a collection would free what this test looks for
    try:
        read_some()
        assert not [each for each in gc.get_objects() if type(each) is Cursor]
    finally:
        gc.enable()
