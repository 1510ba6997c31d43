"""The settings of a client on one channel: prefetch, mode, consumers, the last declared queue."""

from copy import copy
from enum import Enum
from typing import cast

from pamqp import commands
from pamqp.base import Frame

from gateway.kernel.errors import ProtocolViolation
from gateway_amqp.methods import decode_method, table_of
from gateway_amqp.properties import decode_properties
from gateway_amqp.resuming.requests import UnansweredRequest
from gateway_amqp.resuming.transient_topology import Binding, TransientTopology

#: The header of a message of a stream, and the argument of a consumer that begins there.
OFFSET = "x-stream-offset"


class Mode(Enum):
    """The way in which a channel publishes."""

    PLAIN = "plain"
    CONFIRM = "confirm"
    TRANSACTION = "tx"


class RelayedConsumer:
    """A consumer of the channel, with the prefetch limit that it began with.

    ``properties`` are those of its last message of a stream, encoded.
    """

    __slots__ = ("consume", "prefetch", "properties")

    def __init__(self, consume: commands.Basic.Consume, prefetch: commands.Basic.Qos | None) -> None:
        self.consume = consume
        self.prefetch = prefetch
        self.properties = b""

    def request(self) -> commands.Basic.Consume:
        """Return the request that goes on where the client is."""
        found = copy(self.consume)
        if self.properties:
            offset = _offset_in(self.properties)
            if offset is not None:
                found.arguments = dict(table_of(found.arguments)) | {OFFSET: offset + 1}  # type: ignore[assignment]
        return found


def _offset_in(properties: bytes) -> int | None:
    """Return the position of a message in its stream; ``None`` if its publisher's headers cannot be read."""
    try:
        offset = decode_properties(properties).headers.get(OFFSET)
    except ProtocolViolation:
        return None
    return offset if isinstance(offset, int) else None


class ChannelSettings:
    """Owns what is set up again on the channel of another leader.

    ``mode`` counts from the request on, ``answered_mode`` from its answer.
    """

    __slots__ = ("_prefetch", "_topology", "answered_mode", "consumers", "is_open", "last_queue", "mode")

    def __init__(self, topology: TransientTopology) -> None:
        self.is_open = False
        self.mode = self.answered_mode = Mode.PLAIN
        self.consumers: dict[bytes, RelayedConsumer] = {}
        self.last_queue = ""
        self._prefetch: dict[bool, commands.Basic.Qos] = {}
        self._topology = topology

    def requests(self) -> list[Frame]:
        """Return the methods that set everything up on another leader's channel."""
        if not self.is_open:
            return []
        found: list[Frame] = [commands.Channel.Open()]
        if self.answered_mode is Mode.CONFIRM:
            found.append(commands.Confirm.Select())
        elif self.answered_mode is Mode.TRANSACTION:
            found.append(commands.Tx.Select())
        return found + self._consume_requests()

    def _consume_requests(self) -> list[Frame]:
        """Return the methods that set the limits and start the consumers. A limit holds for consumers to come."""
        found: list[Frame] = [self._prefetch[True]] if True in self._prefetch else []
        present: commands.Basic.Qos | None = None
        for consumer in self.consumers.values():
            if consumer.prefetch is not present:
                present = consumer.prefetch
                found.append(present or commands.Basic.Qos())
            found.append(consumer.request())
        last = self._prefetch.get(False)
        return found if last is present or last is None else [*found, last]

    def explicit(self, method: Frame) -> Frame | None:
        """Return a request with the name of the queue that an empty one means; ``None`` if it needs none."""
        queue = getattr(method, "queue", None)
        if queue != "" or not self.last_queue or isinstance(method, commands.Queue.Declare):
            return None
        found = copy(method)
        if isinstance(found, commands.Queue.Bind | commands.Queue.Unbind) and not found.routing_key:
            found.routing_key = self.last_queue
        found.queue = self.last_queue  # type: ignore[attr-defined]  # all of these have it
        return found

    # What requests change

    def learn(self, request: UnansweredRequest, answer: bytes) -> None:
        """Note what a request has changed; its answer is empty if it asked for none."""
        method = request.method
        if request.is_own:
            return
        if isinstance(method, commands.Channel.Open):
            self.is_open = True
        elif isinstance(method, commands.Basic.Qos):
            self._prefetch[method.global_] = method
        elif isinstance(method, commands.Confirm.Select | commands.Tx.Select):
            is_confirm = isinstance(method, commands.Confirm.Select)
            self.answered_mode = Mode.CONFIRM if is_confirm else Mode.TRANSACTION
        elif isinstance(method, commands.Basic.Consume | commands.Basic.Cancel):
            self._learn_consumer(method, answer)
        else:
            self._learn_topology(method, answer)

    def _learn_consumer(self, method: commands.Basic.Consume | commands.Basic.Cancel, answer: bytes) -> None:
        if isinstance(method, commands.Basic.Cancel):
            self.cancelled((method.consumer_tag or "").encode())
            return
        consume = copy(method)
        consume.nowait = False
        consume.queue = str(method.queue or self.last_queue)
        if answer:
            consume.consumer_tag = str(cast(commands.Basic.ConsumeOk, decode_method(answer)).consumer_tag)
        if consume.consumer_tag:
            self.consumers[consume.consumer_tag.encode()] = RelayedConsumer(consume, self._prefetch.get(False))

    def cancelled(self, tag: bytes) -> str:
        """Forget a consumer; return its queue, empty if there was no such consumer."""
        consumer = self.consumers.pop(tag, None)
        if consumer is None:
            return ""
        queue = str(consumer.consume.queue)
        if not any(other.consume.queue == queue for other in self.consumers.values()):
            self._topology.consumer_gone(queue)
        return queue

    def _learn_topology(self, method: Frame, answer: bytes) -> None:
        topology = self._topology
        name: str
        if isinstance(method, commands.Queue.Declare):
            name = str(cast(commands.Queue.DeclareOk, decode_method(answer)).queue if answer else method.queue)
            if name:
                self.last_queue = name
                topology.queue_declared(copy(method), name)
        elif isinstance(method, commands.Exchange.Declare):
            topology.exchange_declared(method)
        elif isinstance(method, commands.Queue.Delete):
            topology.queue_gone(method.queue or self.last_queue)
        elif isinstance(method, commands.Exchange.Delete):
            topology.exchange_gone(method.exchange)
        elif isinstance(method, commands.Queue.Bind | commands.Queue.Unbind):
            name = str(method.queue or self.last_queue)
            key = str(method.routing_key or ("" if method.queue else name))
            self._learn_binding(method, name, key)
        elif isinstance(method, commands.Exchange.Bind | commands.Exchange.Unbind):
            self._learn_binding(method, method.destination, method.routing_key)

    def _learn_binding(self, method: Binding, destination: str, routing_key: str) -> None:
        if isinstance(method, commands.Queue.Bind | commands.Exchange.Bind):
            self._topology.bound(copy(method), destination, routing_key)
        else:
            self._topology.unbound(method, destination, routing_key)
