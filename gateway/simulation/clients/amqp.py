"""An AMQP 0-9-1 client; pamqp encodes and decodes its frames."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pamqp import body, commands, frame, header
from pamqp.heartbeat import Heartbeat

from gateway.simulation.clients.client import SimulatedClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.scene import Scene
from gateway.simulation.world.tasks import Promise, within

#: Time for the answer to a request, in seconds: longer than any hold-up that a run causes.
ANSWER_S: Final = 90.0

_PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
_FRAME_HEAD: Final = 7

#: The delivery mode of durable messages.
_PERSISTENT: Final = 2


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that the client received; ``tag`` is its delivery tag on ``channel``."""

    channel: int
    tag: int
    consumer_tag: str
    is_redelivered: bool
    exchange: str
    routing_key: str
    properties: Any  # Any: pamqp's properties
    body: bytes


class ClientChannel:
    """The state of one channel: requests without an answer, publishes without a confirm, the message being read."""

    def __init__(self) -> None:
        self.answers: deque[Promise[Any]] = deque()
        self.confirms: dict[int, Promise[bool]] = {}
        self.published = 0
        self.is_confirming = False
        self.method: Any = None
        self.properties: Any = None
        self.size = 0
        self.body = b""


class AmqpClient(SimulatedClient):
    """One connection. ``on_delivery`` and ``on_return`` are called with what the broker sends unasked."""

    def __init__(self, scene: Scene, name: str, *, user: str = "guest", vhost: str = "/") -> None:
        super().__init__(scene, name)
        self.on_delivery: Callable[[ReceivedMessage], None] = lambda delivery: None
        self.on_return: Callable[[bytes], None] = lambda body: None
        self.on_cancel: Callable[[str], None] = lambda consumer_tag: None
        self.is_blocked = False
        self._user = user
        self._vhost = vhost
        self._input = bytearray()
        self._wanted = _FRAME_HEAD  # bytes of input without which there is no frame, or no more of one
        self._channels: dict[int, ClientChannel] = {}
        self._is_open: Promise[None] = Promise()

    # Requests

    async def connect(self) -> None:
        """Connect and log in, with one open channel. :raises Lost: if that fails."""
        connection = self._open("amqp")
        self._input.clear()
        self._wanted = _FRAME_HEAD
        self._channels = {0: ClientChannel()}
        self._is_open = Promise()
        self.is_blocked = False
        connection.send(_PROTOCOL_HEADER)
        await within(self.scene.world, self._is_open, ANSWER_S, f"{self.name}: the login")
        await self.open_channel(1)

    async def open_channel(self, number: int) -> None:
        """Open a channel."""
        self._channels[number] = ClientChannel()
        await self.request(commands.Channel.Open(), number)

    async def request(self, method: Any, channel: int = 1) -> Any:
        """Send a method; return its answer. :raises RefusedRequest: if the broker closes the channel instead."""
        promise: Promise[Any] = Promise()
        if channel not in self._channels or self._connection is None:
            raise Lost("the channel is closed")
        self._channels[channel].answers.append(promise)
        self.send(method, channel)
        return await within(self.scene.world, promise, ANSWER_S, f"{self.name}: {method.name}")

    def publish(
        self,
        exchange: str,
        routing_key: str,
        content: bytes,
        *,
        channel: int = 1,
        is_mandatory: bool = False,
        **properties: Any,
    ) -> Promise[bool]:
        """Publish a message; the promise is fulfilled with whether it was confirmed, in confirm mode."""
        promise: Promise[bool] = Promise()
        state = self._channels.get(channel)
        if state is None or self._connection is None:
            promise.fail(Lost("the channel is closed"))
            return promise
        if state.is_confirming:
            state.published += 1
            state.confirms[state.published] = promise
        method = commands.Basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=is_mandatory)
        basic = commands.Basic.Properties(**properties)
        pieces = [
            frame.marshal(method, channel),
            frame.marshal(header.ContentHeader(0, len(content), basic), channel),
            frame.marshal(body.ContentBody(content), channel),
        ]
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"publish {exchange!r} {routing_key!r} {content[:40]!r}")
        self._connection.send(b"".join(pieces))
        return promise

    def send(self, method: Any, channel: int = 1) -> None:
        """Send a method without waiting for an answer; nothing is sent to a channel that the broker closed."""
        if channel not in self._channels and not isinstance(method, commands.Channel.CloseOk):
            return
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"-> {_shown(method)}")
        if self._connection is not None:
            self._connection.send(frame.marshal(method, channel))

    async def confirm(self, channel: int = 1) -> None:
        """Put a channel into confirm mode."""
        await self.request(commands.Confirm.Select(), channel)
        if channel not in self._channels:
            raise Lost("the channel was closed after it")
        self._channels[channel].is_confirming = True

    async def declare(self, queue: str, *, arguments: Mapping[str, Any] | None = None, **flags: bool) -> Any:
        """Declare a queue; return the answer."""
        return await self.request(commands.Queue.Declare(queue=queue, arguments=dict(arguments or {}), **flags))

    async def get(self, queue: str) -> ReceivedMessage | None:
        """Fetch a message, to be acknowledged; ``None`` if the queue is empty."""
        answer = await self.request(commands.Basic.Get(queue=queue))
        return answer if isinstance(answer, ReceivedMessage) else None

    def acknowledge(self, delivery: ReceivedMessage, *, up_to: bool = False) -> None:
        """Acknowledge a delivery."""
        self.send(commands.Basic.Ack(delivery_tag=delivery.tag, multiple=up_to), delivery.channel)

    async def close(self) -> None:
        """Close the connection in order."""
        if self._connection is not None:
            try:
                await self.request(
                    commands.Connection.Close(reply_code=200, reply_text="bye", class_id=0, method_id=0), 0
                )
            except (Lost, RefusedRequest):
                return
            if self._connection is not None:
                self._connection.close()

    # Input

    def received(self, data: bytes) -> None:
        """Handle bytes of the broker."""
        self._input += data
        while len(self._input) >= self._wanted:
            size = int.from_bytes(self._input[3:7], "big") + _FRAME_HEAD + 1
            if len(self._input) < size:
                self._wanted = size
                return
            raw = bytes(self._input[:size])
            del self._input[:size]
            self._wanted = _FRAME_HEAD
            try:
                _, number, received = frame.unmarshal(raw)
            except Exception as error:
                self.scene.findings.add("what the broker sends can be read", f"{self.name}: {error}: {raw[:80]!r}")
                return
            self._handle(number, received)

    def closed(self) -> None:
        """Handle the end of the connection."""
        self.scene.trace.add(self.name, "connection ended")
        self._connection = None
        channels, self._channels = self._channels, {}
        self._is_open.fail(Lost("the connection ended"))
        for channel in channels.values():
            _fail(channel, Lost("the connection ended"))

    def _handle(self, number: int, received: Any) -> None:
        channel = self._channels.get(number)
        if isinstance(received, header.ContentHeader) and channel is not None:
            channel.properties, channel.size, channel.body = received.properties, received.body_size, b""
            self._complete(number, channel)
        elif isinstance(received, body.ContentBody) and channel is not None:
            channel.body += received.value
            self._complete(number, channel)
        elif isinstance(received, commands.Basic.Deliver | commands.Basic.GetOk | commands.Basic.Return):
            if channel is not None:
                channel.method = received
        elif not isinstance(received, Heartbeat):
            if self.scene.trace.is_on:
                self.scene.trace.add(self.name, f"<- {_shown(received)}")
            self._handle_method(number, channel, received)

    def _complete(self, number: int, channel: ClientChannel) -> None:
        if len(channel.body) < channel.size:
            return
        method = channel.method
        if self.scene.trace.is_on:
            self.scene.trace.add(self.name, f"<- {_shown(method)} {channel.body[:40]!r}")
        properties = channel.properties
        content_type, is_durable = properties.content_type, properties.delivery_mode == _PERSISTENT
        self.scene.history.check_properties(
            self.name, channel.body.decode(errors="replace"), content_type or None, is_durable
        )
        if isinstance(method, commands.Basic.Return):
            self.on_return(channel.body)
            return
        delivery = ReceivedMessage(
            number,
            method.delivery_tag,
            getattr(method, "consumer_tag", ""),
            method.redelivered,
            method.exchange,
            method.routing_key,
            channel.properties,
            channel.body,
        )
        if isinstance(method, commands.Basic.GetOk):
            channel.answers.popleft().fulfil(delivery)
        else:
            self.on_delivery(delivery)

    def _handle_method(self, number: int, channel: ClientChannel | None, method: Any) -> None:
        match method:
            case commands.Connection.Start():
                response = f"\x00{self._user}\x00{self._user}"
                able: dict[str, Any] = {"consumer_cancel_notify": True, "connection.blocked": True}
                self.send(commands.Connection.StartOk({"capabilities": able}, "PLAIN", response, "en_US"), 0)
            case commands.Connection.Tune():
                self.send(commands.Connection.TuneOk(method.channel_max, method.frame_max, 0), 0)
                self.send(commands.Connection.Open(self._vhost), 0)
            case commands.Connection.OpenOk():
                self._is_open.fulfil(None)
            case commands.Connection.Close():
                self.send(commands.Connection.CloseOk(), 0)
                error = _refusal(method)
                self._is_open.fail(error)
                for each in self._channels.values():
                    _fail(each, error)
                if self._connection is not None:
                    self._connection.close()
            case commands.Connection.Blocked():
                self.is_blocked = True
            case commands.Connection.Unblocked():
                self.is_blocked = False
            case commands.Channel.Close():
                self.send(commands.Channel.CloseOk(), number)
                self._channels.pop(number, None)
                if channel is not None:
                    _fail(channel, _refusal(method))
            case commands.Basic.Cancel():
                self.on_cancel(str(method.consumer_tag))
            case commands.Basic.Ack() | commands.Basic.Nack():
                if channel is not None:
                    self._settle(channel, method)
            case _:
                if channel is not None and channel.answers:
                    channel.answers.popleft().fulfil(method)

    def _settle(self, channel: ClientChannel, method: Any) -> None:
        is_confirmed = isinstance(method, commands.Basic.Ack)
        last = method.delivery_tag
        tags = [tag for tag in channel.confirms if tag <= last] if method.multiple else [last]
        for tag in tags:
            promise = channel.confirms.pop(tag, None)
            if promise is None:
                self.scene.findings.add("each publish is confirmed once", f"{self.name}: tag {tag} again")
            else:
                promise.fulfil(is_confirmed)


def _fail(channel: ClientChannel, error: Exception) -> None:
    for promise in (*channel.answers, *channel.confirms.values()):
        promise.fail(error)


def _refusal(close: Any) -> RefusedRequest:
    return RefusedRequest(int(close.reply_code), str(close.reply_text))


def _shown(method: Any) -> str:
    fields = " ".join(f"{name}={value!r}" for name, value in method if value not in (None, "", 0, False, {}))
    return f"{method.name} {fields}"
