"""Shovels between AMQP brokers: opens both ends as the definition says, and addresses the messages."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpDestination, AmqpSource, ensure_queue, open_channel
from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.parcel import MessageDestination, MessageSource, Parcel
from gateway.bridges.shovel_definition import NEVER, ShovelDefinition
from gateway.bridges.transfer import ShovelAckMode, Transfer
from gateway.kernel.clock import Clock

#: The header that records the shovels that a message passed.
SHOVELLED: Final = "x-shovelled"
TIMESTAMP: Final = "x-shovelled-timestamp"


class Shovel:
    """Opens the ends of one shovel. ``node`` is the name in forward headers; ``on_done`` is called when it has moved
    as many messages as it was to move.

    ``src_uri`` and ``dest_uri`` are those in use.
    """

    def __init__(
        self, definition: ShovelDefinition, dialer: AmqpDialer, clock: Clock, node: str, on_done: Callable[[], None]
    ) -> None:
        self.definition = definition
        self.src_uri = definition.src_uris[0]
        self.dest_uri = definition.dest_uris[0]
        self._dialer = dialer
        self._clock = clock
        self._node = node
        self._on_done = on_done

    async def open(self, lost: Lost) -> Transfer:
        """Open both ends. Raises the errors of the connections; then no end is left open."""
        definition = self.definition
        source, remaining = await self._source(lost)
        try:
            destination = await self._destination(lost)
        except BaseException:
            source.close()
            raise
        return Transfer(
            source,
            destination,
            definition.ack_mode,
            self._addressed,
            self._clock.call_later,
            remaining,
            self._on_done,
        )

    async def _source(self, lost: Lost) -> tuple[MessageSource, int | None]:
        """Return the source, and the number of messages to move; ``None`` is no limit."""
        definition = self.definition
        connection, self.src_uri = await self._connected(definition.src_uris, "src")
        try:
            queue, count = await self._source_queue(connection)
            channel = await open_channel(connection)
            if not queue:
                declared = await channel.queue_declare("", exclusive=True)
                queue = declared.method.queue
                await channel.queue_bind(queue, definition.text("src-exchange"), definition.text("src-exchange-key"))
            await channel.basic_qos(prefetch_count=min(definition.prefetch, 65_535))
            no_ack = definition.ack_mode is ShovelAckMode.NO_ACK
            source = AmqpSource(connection, channel, lost, queue, no_ack)
            source.consumer_arguments = definition.table("src-consumer-args")
        except BaseException:
            connection.leave()
            raise
        after = definition.delete_after
        return source, None if after == NEVER else after if isinstance(after, int) else count

    async def _source_queue(self, connection: Any) -> tuple[str, int]:
        """Return the source's queue and its length; an empty name if it is an exchange."""
        definition = self.definition
        queue = definition.text("src-queue")
        if not queue:
            return "", 0
        passive = bool(definition.value.get("src-predeclared"))
        return queue, await ensure_queue(connection, queue, definition.table("src-queue-args"), passive)

    async def _destination(self, lost: Lost) -> MessageDestination:
        definition = self.definition
        connection, self.dest_uri = await self._connected(definition.dest_uris, "dest")
        try:
            if queue := definition.text("dest-queue"):
                passive = bool(definition.value.get("dest-predeclared"))
                await ensure_queue(connection, queue, definition.table("dest-queue-args"), passive)
            channel = await open_channel(connection)
            if definition.ack_mode is ShovelAckMode.ON_CONFIRM:
                await channel.confirm_delivery()
            return AmqpDestination(connection, channel, lost)
        except BaseException:
            connection.leave()
            raise

    async def _connected(self, uris: Sequence[BrokerUri], end: str) -> tuple[Any, BrokerUri]:
        return await self._dialer.connect_first(uris, f"Shovel {self.definition.name} ({end})", "/")

    def _addressed(self, parcel: Parcel) -> bool:
        """Set exchange, routing key and properties of a message for the destination."""
        definition = self.definition
        value, properties = definition.value, parcel.properties
        if "dest-queue" in value:
            parcel.exchange, parcel.routing_key = "", definition.text("dest-queue")
        else:
            parcel.exchange = str(value.get("dest-exchange", parcel.exchange))
            parcel.routing_key = str(value.get("dest-exchange-key", parcel.routing_key))
        for name, item in definition.properties.items():
            setattr(properties, name, item)
        if definition.adds_headers:
            passed = (properties.headers or {}).get(SHOVELLED)
            entries = [self._forward_header(), *(passed if isinstance(passed, list) else [])]
            properties.headers = {**(properties.headers or {}), SHOVELLED: entries}
        if definition.adds_timestamp:
            properties.headers = {**(properties.headers or {}), TIMESTAMP: self._clock.wall_ms() // 1000}
        return True

    def _forward_header(self) -> dict[str, str]:
        definition = self.definition
        names = ("src-exchange", "src-exchange-key", "src-queue", "dest-exchange", "dest-exchange-key", "dest-queue")
        return {
            "shovelled-by": self._node,
            "shovel-type": "dynamic",
            "shovel-name": definition.name,
            "shovel-vhost": definition.vhost,
            "src-uri": self.src_uri.shown,
            "dest-uri": self.dest_uri.shown,
            **{name: definition.text(name) for name in names if name in definition.value},
        }
