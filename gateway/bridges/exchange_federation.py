"""The link of a federated exchange to one upstream: its bindings are made there, and the messages come here.

At the upstream there is a durable queue, and an internal exchange bound to it, to which the upstream's exchange is
bound as the exchange here is. Each new connection makes another internal exchange (A or B) and deletes the earlier one:
so bindings that were removed meanwhile leave nothing behind, and no message is missed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pika.exceptions import ChannelClosedByBroker
from twisted.internet.defer import Deferred

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpSource
from gateway.bridges.federated_destination import local_destination
from gateway.bridges.link import Lost, reason_of
from gateway.bridges.parcel import Parcel
from gateway.bridges.received_from import arrived, bound_onward, may_come
from gateway.bridges.transfer import ShovelAckMode, Transfer
from gateway.bridges.upstreams import Upstream
from gateway.kernel.clock import Clock
from gateway.kernel.errors import NotAllowed, NotFound
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost

_NOT_FOUND: Final = 404

#: Seconds for which changes of bindings are collected before they are made at the upstream.
_COLLECT_S: Final = 0.05

#: Bindings between two checks of the clock.
_STEP: Final = 64

BindingKey = tuple[str, bytes]
"""The identity of a binding at the upstream: routing key and encoded arguments, whatever its destination here."""


class ExchangeLink:
    """One exchange and one upstream. ``node`` is the name of this node in headers and names."""

    kind: Final = "exchange"

    def __init__(
        self, vhost: VirtualHost, exchange: Exchange, upstream: Upstream, dialer: AmqpDialer, clock: Clock, node: str
    ) -> None:
        self.upstream = upstream
        self.uri = upstream.uris[0]
        self.remote_name = upstream.exchange or exchange.name
        self._vhost = vhost
        self._exchange = exchange
        self._dialer = dialer
        self._clock = clock
        self._node = node
        self._remote: tuple[str, str] = ("", "")
        self._queue = f"federation: {self.remote_name} -> {node}:{vhost.name}:{exchange.name}"
        self._internal = ""
        self._commands: Any = None
        self._bound: dict[BindingKey, tuple[str, Mapping[str, Any]]] = {}
        self._is_collecting = False
        self._is_changing = False
        self._is_stale = False
        self._lost: Lost = lambda reason: None

    @property
    def _name(self) -> str:
        return f"Federation link (upstream: {self.upstream.name}, policy: {self._exchange.name})"

    async def open(self, lost: Lost) -> Transfer:
        """Open both ends. Raises the errors of the connections; then no end is left open."""
        upstream = self.upstream
        connection, self.uri = await self._dialer.connect_first(upstream.uris, self._name, self._vhost.name)
        try:
            self._commands = None
            channel = await connection.open_channel()
            commands = await connection.open_channel()
            commands.on_closed.addBoth(lambda result: lost(reason_of(getattr(result, "value", result))))
            properties = channel.connection.server_properties or {}
            remote_vhost = self._vhost.name if self.uri.vhost is None else self.uri.vhost
            self._remote = (str(properties.get("cluster_name") or self.uri.host), remote_vhost)
            await self._prepare(connection, commands)
            await channel.basic_qos(prefetch_count=upstream.prefetch)
            source = AmqpSource(connection, channel, lost, self._queue, upstream.ack_mode is ShovelAckMode.NO_ACK)
            source.consumer_tag = upstream.consumer_tag
            self._commands, self._lost = commands, lost
            self.bindings_changed()  # those that changed meanwhile
            destination = await local_destination(self._dialer, self._name, self._vhost.name, upstream.ack_mode, lost)
        except BaseException:
            self._commands = None
            connection.leave()
            raise
        return Transfer(source, destination, upstream.ack_mode, self._addressed, self._clock.call_later)

    def bindings_changed(self) -> None:
        """Follow the bindings of the exchange, a moment later for all changes together."""
        if not self._is_collecting:
            self._is_collecting = True
            self._clock.call_later(_COLLECT_S, self._collect)

    async def clean_up(self) -> None:
        """Delete the queue and the exchange at the upstream, because the exchange is no longer federated."""
        commands, self._commands = self._commands, None
        if commands is not None and commands.is_open and self.upstream.cleans_up:
            await commands.exchange_delete(self._internal)
            await commands.queue_delete(self._queue)  # last: the consumer of the queue ends, and closes the connection

    # At the upstream

    async def _prepare(self, connection: Any, commands: Any) -> None:
        upstream, exchange = self.upstream, self._exchange
        if not await _exists(connection, self.remote_name):
            await commands.exchange_declare(
                self.remote_name,
                exchange.type_name,
                durable=exchange.is_durable,
                auto_delete=exchange.is_auto_delete,
                arguments=dict(exchange.arguments) or None,
            )
        limits: dict[str, Any] = {"x-expires": upstream.expires_ms, "x-message-ttl": upstream.ttl_ms}
        limits["x-queue-type"] = upstream.queue_type or None
        arguments = {name: value for name, value in limits.items() if value is not None}
        await commands.queue_declare(self._queue, durable=True, arguments=arguments or None)
        earlier, new = f"{self._queue} A", f"{self._queue} B"
        if not await _exists(connection, earlier):
            earlier, new = new, earlier
        await commands.exchange_delete(new)
        await commands.exchange_declare(new, "fanout", durable=True, auto_delete=True, internal=True)
        await commands.queue_bind(self._queue, new)
        self._internal, self._bound = new, {}
        wanted: dict[BindingKey, tuple[str, Mapping[str, Any]]] = {}
        for _ in self._wanted(wanted):
            pass
        await self._change(commands, wanted)
        await commands.exchange_delete(earlier)

    def _collect(self) -> None:
        self._is_collecting = False
        if self._commands is None:
            return  # a new connection collects them
        if self._is_changing:
            self._is_stale = True
            return
        self._is_changing = True
        wanted: dict[BindingKey, tuple[str, Mapping[str, Any]]] = {}

        def steps() -> Iterator[None]:
            yield from self._wanted(wanted)
            changing: Deferred[None] = Deferred.fromCoroutine(self._change_now(wanted))
            changing.addErrback(lambda failure: self._lost(reason_of(failure.value)))

        self._clock.background.add(steps())

    async def _change_now(self, wanted: Mapping[BindingKey, tuple[str, Mapping[str, Any]]]) -> None:
        commands = self._commands
        try:
            if commands is not None:
                await self._change(commands, wanted)
        finally:
            self._is_changing = False
        if self._is_stale:
            self._is_stale = False
            self.bindings_changed()

    def _wanted(self, wanted: dict[BindingKey, tuple[str, Mapping[str, Any]]]) -> Iterator[None]:
        """Collect the bindings to be made at the upstream, in steps."""
        here = (self._node, self._vhost.name, self._exchange.name)
        for number, binding in enumerate(self._bindings()):
            arguments = bound_onward(binding.arguments, self.upstream.max_hops, here, self._remote)
            if arguments is not None:
                _, routing_key, encoded = binding.key()
                wanted[routing_key, encoded] = (routing_key, arguments)
            if number % _STEP == _STEP - 1:
                yield

    def _bindings(self) -> list[Binding]:
        try:
            return self._vhost.bindings.of(self._vhost.exchange(self._exchange.name))
        except (NotFound, NotAllowed):
            return []

    async def _change(self, commands: Any, wanted: Mapping[BindingKey, tuple[str, Mapping[str, Any]]]) -> None:
        """Bind and unbind at the upstream until it has the wanted bindings."""
        for key in [key for key in wanted if key not in self._bound]:
            routing_key, arguments = wanted[key]
            await commands.exchange_bind(self._internal, self.remote_name, routing_key, arguments=dict(arguments))
            self._bound[key] = wanted[key]
        for key in [key for key in self._bound if key not in wanted]:
            routing_key, arguments = self._bound[key]
            await commands.exchange_unbind(self._internal, self.remote_name, routing_key, arguments=dict(arguments))
            del self._bound[key]

    # Messages

    def _addressed(self, parcel: Parcel) -> bool:
        """Address a message to the exchange here; return whether it may come."""
        properties = parcel.properties
        if not may_come(properties.headers, self.upstream.max_hops, self._node, self._vhost.name):
            return False
        entry = {
            "uri": self.uri.shown,
            "exchange": self.remote_name,
            "redelivered": parcel.is_redelivered,
            "cluster-name": self._remote[0],
            "vhost": self._remote[1],
        }
        properties.headers = arrived(properties.headers, entry)
        if not self.upstream.trusts_user_id:
            properties.user_id = None
        parcel.exchange = self._exchange.name
        return True


async def _exists(connection: Any, exchange: str) -> bool:
    """Return whether an exchange exists."""
    channel = await connection.open_channel()
    try:
        await channel.exchange_declare(exchange, passive=True)
    except ChannelClosedByBroker as refusal:
        if refusal.reply_code != _NOT_FOUND:
            raise
        return False
    channel.close()
    return True
