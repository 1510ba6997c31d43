"""A traced message for very many queues: it takes many turns too, and its trace is a summary."""

import json
from collections.abc import Sequence

import pytest

from gateway.kernel.archives import trace_table
from gateway.kernel.archives.archive import TRACE
from gateway.kernel.archives.message_trace import MOST_EVENTS, MOST_ROUTES, MessageTrace
from gateway.kernel.archives.tracer import MOST_NAMES
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import decode_content
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of
from tests.behaviour.wide_letters import fanout, run_turns, targets_of, waiting
from tests.clocks import TurnClock

WIDTH = MOST_QUEUES + 300
ORIGIN = Origin("client -> broker", 1, "guest", "amqp091")


class Names:
    """A tracer that keeps the names of queues."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        self.calls.append(queues)

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        raise NotImplementedError


@pytest.fixture
def broker() -> MemoryBroker:
    broker = MemoryBroker(clock=TurnClock())
    fanout(broker, "wide", WIDTH)
    run_turns(broker, lambda: 0)
    return broker


def publish(broker: MemoryBroker) -> None:
    exchange = broker.vhost.exchange("wide")
    broker.vhost.publish(exchange, Message("wide", "", header_of(is_persistent=True), b"m"), ORIGIN)


def only_trace(broker: MemoryBroker) -> MessageTrace:
    [trace] = broker.vhost.message_traces
    return trace


def test_the_route_is_found_in_slices_while_a_tracer_observes(broker: MemoryBroker) -> None:
    broker.kernel.trace("/", True)
    assert broker.vhost.tracing is not None
    tracer = Names()
    broker.vhost.tracing.add(tracer)
    publish(broker)
    assert (waiting(targets_of(broker)), tracer.calls) == (0, [])
    rises = run_turns(broker, lambda: waiting(targets_of(broker)))
    assert sum(rises) == WIDTH
    assert max(rises) < WIDTH // 2
    assert [len(names) for names in tracer.calls] == [MOST_NAMES + 1]
    assert (tracer.calls[0][0], tracer.calls[0][-1]) == ("wide0", f"... and {WIDTH - MOST_NAMES} more")


def test_a_firehose_copy_names_a_bounded_number_of_queues(broker: MemoryBroker) -> None:
    copies = broker.vhost.declare_queue("copies")
    broker.kernel.trace("/", True)
    broker.vhost.bind(broker.vhost.exchange("amq.rabbitmq.trace"), copies, "publish.#")
    publish(broker)
    run_turns(broker, lambda: 0)
    recipient = Recipient()
    recipient.consume(copies)
    [received] = recipient.received
    routed = received.message.headers["routed_queues"]
    assert isinstance(routed, list)
    assert len(routed) == MOST_NAMES + 1


def test_a_trace_in_memory_leaves_out_routes_and_events(broker: MemoryBroker) -> None:
    broker.kernel.trace_messages("/", 1.0)
    run_turns(broker, lambda: 0)
    publish(broker)
    run_turns(broker, lambda: 0)
    trace = only_trace(broker)
    events = trace.events
    routes = [event for event in events if event.kind == "route"]
    enqueues = [event.queue for event in events if event.kind == "enqueue"]
    assert len(routes) == MOST_ROUTES
    assert len(enqueues) <= MOST_EVENTS
    assert (enqueues[0], enqueues[-1]) == ("wide0", f"wide{WIDTH - 1}")
    left_out = [event.detail for event in events if event.kind == "left-out"]
    assert left_out == [f"{WIDTH - MOST_ROUTES} routes", f"{WIDTH - len(enqueues)} events"]
    assert trace.size == broker.vhost.message_traces.bytes


def test_events_after_those_that_were_left_out_are_noted(broker: MemoryBroker) -> None:
    broker.kernel.trace_messages("/", 1.0)
    run_turns(broker, lambda: 0)
    publish(broker)
    run_turns(broker, lambda: 0)
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("wide700"))
    recipient.settle(None, up_to=True)
    assert [(event.kind, event.queue) for event in only_trace(broker).events][-1] == ("settle", "wide700")


@pytest.mark.source
def test_the_trace_table_encodes_few_events_at_once(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = trace_table._ENCODE
    monkeypatch.setattr(trace_table, "_ENCODE", lambda rows: encoded.append(len(rows)) or encode(rows))
    broker.kernel.trace_to_table("/", True)
    run_turns(broker, lambda: 0)
    publish(broker)
    run_turns(broker, lambda: 0)
    assert max(encoded) <= 64
    [archive] = [archive for archive in broker.vhost.archives if archive.record.source == TRACE]
    broker.commit()
    chunks = archive.log.read(archive.log.first, 1 << 24)
    assert chunks is not None
    rows = [row for _, _, _, content in entries(chunks, 0) for row in json.loads(decode_content(content).body)]
    assert sum(row[0] == "enqueue" for row in rows) == WIDTH
    assert sum(row[0] == "route" for row in rows) == 1001
