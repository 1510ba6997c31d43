"""A broker in memory with a test clock, and its clients, for behaviour tests.

A test uses a ``Scenario`` to declare, set policies, publish, fetch and advance the time. Publishing and receiving
depend on the protocol: each has a ``ProtocolClient``, so that a test runs once per protocol.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol

from pamqp import commands

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import FakeClock
from gateway_amqp.properties import decode_properties
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frame_reader import ReceivedFrame
from tests.protocols.amqp.frames import publish
from tests.scenarios.all_protocols_broker import AllProtocolsBroker


@dataclass(frozen=True)
class Received:
    """A received message, with the tag to settle it."""

    body: bytes
    exchange: str
    routing_key: str
    redelivered: bool
    tag: int
    headers: Mapping[str, Value] = field(default_factory=dict)
    properties: Mapping[str, object] = field(default_factory=dict)

    @property
    def deaths(self) -> list[dict[str, Value]]:
        """The ``x-death`` header, newest first."""
        entries = self.headers.get("x-death", [])
        assert isinstance(entries, list)
        return [dict(entry) for entry in entries if isinstance(entry, dict)]

    @property
    def died(self) -> list[tuple[Value, Value, Value]]:
        """Queue, reason and count of each death, newest first."""
        return [(death["queue"], death["reason"], death["count"]) for death in self.deaths]


class Unsupported(Exception):
    """The protocol cannot express this."""


class ProtocolClient(Protocol):
    """A client that publishes with confirms, and settles what it receives."""

    def publish(self, exchange: str, routing_key: str, body: bytes, **properties: Any) -> bool:
        """Publish; return whether the broker confirmed it. ``properties`` are the kernel's ``Properties``."""
        ...

    def get(self, queue: str) -> Received | None:
        """Fetch one message without settling it."""
        ...

    def consume(self, queue: str, prefetch: int = 0) -> None:
        """Start to consume."""
        ...

    def received(self) -> Sequence[Received]:
        """Return the deliveries since the last call."""
        ...

    def settle(self, received: Received, outcome: DeliveryOutcome) -> None:
        """Settle one message."""
        ...

    def leave(self) -> None:
        """Close the connection without a handshake."""
        ...


class AmqpClient:
    """An AMQP 0-9-1 client, with one channel for publishing and one for receiving."""

    def __init__(self, broker: AllProtocolsBroker) -> None:
        self.peer: Peer = broker.peer()
        self.peer.send(commands.Confirm.Select())
        self.peer.send(commands.Channel.Open(), channel=2)
        self.peer.receive()
        self._pushed: list[Received] = []

    def publish(self, exchange: str, routing_key: str, body: bytes, **properties: Any) -> bool:
        """Publish and wait for the confirm. Any: each property has its own type."""
        self.peer.send(publish(exchange, routing_key, body, **properties))
        answers = [received.method for received in self._receive() if received.channel == 1]
        assert len(answers) == 1, answers
        assert isinstance(answers[0], commands.Basic.Ack | commands.Basic.Nack), answers
        return isinstance(answers[0], commands.Basic.Ack)

    def get(self, queue: str) -> Received | None:
        """Fetch with ``basic.get``."""
        self.peer.send(commands.Basic.Get(0, queue), channel=2)
        (answer,) = (
            received
            for received in self._receive()
            if isinstance(received.method, commands.Basic.GetOk | commands.Basic.GetEmpty)
        )
        return None if isinstance(answer.method, commands.Basic.GetEmpty) else _received(answer)

    def consume(self, queue: str, prefetch: int = 0, arguments: Mapping[str, Any] | None = None) -> None:
        """Consume with a prefetch. Any: an argument may have any type of pamqp."""
        consume = commands.Basic.Consume(0, queue, arguments=dict(arguments or {}))
        self.peer.send(commands.Basic.Qos(0, prefetch), consume, channel=2)
        self._receive()

    def received(self) -> Sequence[Received]:
        """Return the deliveries since the last call."""
        self._receive()
        pushed, self._pushed = self._pushed, []
        return pushed

    def settle(self, received: Received, outcome: DeliveryOutcome) -> None:
        """Acknowledge or reject one delivery."""
        if outcome is DeliveryOutcome.ACCEPTED:
            self.peer.send(commands.Basic.Ack(received.tag), channel=2)
        else:
            self.peer.send(commands.Basic.Nack(received.tag, False, outcome is DeliveryOutcome.REQUEUED), channel=2)
        self._receive()

    def leave(self) -> None:
        """Close the connection without a handshake."""
        self.peer.lose()

    def _receive(self) -> list[ReceivedFrame]:
        received = self.peer.receive_frames()
        self._pushed += [_received(each) for each in received if isinstance(each.method, commands.Basic.Deliver)]
        return [each for each in received if not isinstance(each.method, commands.Basic.Deliver)]


class AmqpReceiver:
    """The receiving half of a client that publishes over another protocol: AMQP fetches by name and shows everything.

    ``lose_publisher`` closes the connection that publishes.
    """

    def __init__(self, broker: AllProtocolsBroker, lose_publisher: Callable[[], None]) -> None:
        self._receiver = AmqpClient(broker)
        self._lose_publisher = lose_publisher

    def get(self, queue: str) -> Received | None:
        """Fetch one message over AMQP."""
        return self._receiver.get(queue)

    def consume(self, queue: str, prefetch: int = 0) -> None:
        """Start to consume over AMQP."""
        self._receiver.consume(queue, prefetch)

    def received(self) -> Sequence[Received]:
        """Return the deliveries since the last call."""
        return self._receiver.received()

    def settle(self, received: Received, outcome: DeliveryOutcome) -> None:
        """Settle one message."""
        self._receiver.settle(received, outcome)

    def leave(self) -> None:
        """Close both connections without a handshake."""
        self._receiver.leave()
        self._lose_publisher()


def _received(received: ReceivedFrame) -> Received:
    method = received.method
    assert isinstance(method, commands.Basic.Deliver | commands.Basic.GetOk)
    properties = decode_properties(received.properties)
    values = {each.name: getattr(properties, each.name) for each in fields(properties)}
    return Received(
        received.body,
        method.exchange or "",
        method.routing_key or "",
        bool(method.redelivered),
        method.delivery_tag or 0,
        dict(properties.headers),
        {name: value for name, value in values.items() if value is not None},
    )


class Scenario:
    """One broker in memory on a test clock, and one client of it."""

    def __init__(self, client_type: Callable[[AllProtocolsBroker], ProtocolClient] = AmqpClient) -> None:
        self.clock = FakeClock()
        self._client_type = client_type
        self.gateway = AllProtocolsBroker(clock=self.clock)
        self.client = client_type(self.gateway)

    @property
    def vhost(self) -> VirtualHost:
        """The virtual host of the scenario."""
        return self.gateway.vhost

    # Topology

    def queue(self, name: str, arguments: Mapping[str, Value] | None = None, *, is_durable: bool = True) -> Queue:
        """Declare a queue."""
        return self.vhost.declare_queue(name, is_durable=is_durable, arguments=arguments)

    def exchange(self, name: str, type: str = "fanout", *queues: str, **arguments: Value) -> None:
        """Declare an exchange and bind queues to it, by their own names."""
        exchange = self.vhost.declare_exchange(
            name, type, is_durable=True, arguments={key.replace("_", "-"): value for key, value in arguments.items()}
        )
        for queue in queues:
            self.vhost.bind(exchange, self.vhost.queue(queue), queue)

    def policy(
        self,
        definition: Mapping[str, Value],
        *,
        name: str = "p",
        pattern: str = ".*",
        priority: int = 0,
        apply_to: str = "all",
        is_operator: bool = False,
    ) -> PolicyRecord:
        """Set a policy."""
        record = PolicyRecord("/", name, is_operator, pattern, apply_to, priority, dict(definition))
        self.gateway.broker.put_policy(record)
        return record

    # Messages

    def publish(self, *bodies: bytes, to: str = "q", exchange: str = "", **properties: Any) -> list[bool]:
        """Publish messages; return which of them the broker confirmed."""
        return [self.client.publish(exchange, to, body, **properties) for body in bodies]

    def get(self, queue: str = "q") -> Received:
        """Fetch a message, which must exist, without settling it."""
        received = self.client.get(queue)
        assert received is not None, f"nothing in {queue}"
        return received

    def drain(self, queue: str = "q") -> list[Received]:
        """Consume and acknowledge all messages."""
        drained = []
        while (received := self.client.get(queue)) is not None:
            self.client.settle(received, DeliveryOutcome.ACCEPTED)
            drained.append(received)
        return drained

    def bodies(self, queue: str = "q") -> list[bytes]:
        """Consume and acknowledge all messages; return their bodies."""
        return [received.body for received in self.drain(queue)]

    def ready(self, queue: str = "q") -> int:
        """Return the number of ready messages."""
        return len(self.vhost.queue(queue))

    def reject(self, queue: str = "q") -> None:
        """Fetch a message and reject it without requeueing."""
        self.client.settle(self.get(queue), DeliveryOutcome.REJECTED)

    def requeue(self, queue: str = "q") -> Received:
        """Fetch a message and requeue it."""
        received = self.get(queue)
        self.client.settle(received, DeliveryOutcome.REQUEUED)
        return received

    # Streams

    def stream(self, name: str = "q", **arguments: Value) -> Queue:
        """Declare a stream; ``max_age`` stands for ``x-max-age``."""
        asked = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        return self.queue(name, {"x-queue-type": "stream", **asked})

    def reader(self, queue: str = "q", prefetch: int = 1000, **arguments: Any) -> AmqpClient:
        """Return an AMQP consumer of a stream; ``offset`` stands for ``x-stream-offset``."""
        reader = AmqpClient(self.gateway)
        reader.consume(queue, prefetch, {f"x-stream-{key.replace('_', '-')}": arguments[key] for key in arguments})
        self.advance(0)
        return reader

    def read(self, queue: str = "q", **arguments: Any) -> list[Received]:
        """Return the deliveries to a new consumer of a stream."""
        reader = self.reader(queue, **{"offset": "first", **arguments})
        received = list(reader.received())
        reader.leave()
        return received

    def offsets(self, queue: str = "q", **arguments: Any) -> list[Value]:
        """Return the offsets of the deliveries to a new consumer of a stream."""
        return [received.headers["x-stream-offset"] for received in self.read(queue, **arguments)]

    # Time and restarts

    def advance(self, milliseconds: float) -> None:
        """Advance the clock between two turns."""
        self.gateway.settle()
        self.clock.advance(milliseconds / 1000)
        self.gateway.settle()

    def restart(self) -> None:
        """Kill the broker once everything is durable, and start another one on its store."""
        self.gateway.settle()
        self.gateway = AllProtocolsBroker(store=self.gateway.store.reopened(), clock=FakeClock(self.clock.wall_ms()))
        self.clock = self.gateway.clock
        self.client = self._client_type(self.gateway)

    @property
    def now_s(self) -> int:
        """The current time in seconds."""
        return self.clock.wall_ms() // 1000


def second_of(time: object) -> int:
    """Return a timestamp in seconds."""
    assert isinstance(time, datetime)
    return int(time.timestamp())
