"""The AMQP ends of shovels."""

from typing import Any

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpDestination, AmqpSource, ensure_queue
from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.shovel_definition import ShovelDefinition
from gateway.bridges.shovel_ends import OpenedDestination, OpenedSource
from gateway.bridges.transfer import ShovelAckMode


class AmqpShovelEnds:
    """Opens AMQP sources and destinations as a shovel defines them."""

    def __init__(self, dialer: AmqpDialer) -> None:
        self._dialer = dialer

    async def source(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedSource:
        """Open the source."""
        connection = await self._dialer.connect(uri, f"Shovel {definition.name} (src)", "/")
        try:
            queue, count = await self._source_queue(connection, definition)
            channel = await connection.open_channel()
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
        return OpenedSource(source, count)

    async def destination(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedDestination:
        """Open the destination."""
        connection = await self._dialer.connect(uri, f"Shovel {definition.name} (dest)", "/")
        try:
            if queue := definition.text("dest-queue"):
                passive = bool(definition.value.get("dest-predeclared"))
                await ensure_queue(connection, queue, definition.table("dest-queue-args"), passive)
            channel = await connection.open_channel()
            if definition.ack_mode is ShovelAckMode.ON_CONFIRM:
                await channel.confirm_delivery()
            return AmqpDestination(connection, channel, lost)
        except BaseException:
            connection.leave()
            raise

    async def _source_queue(self, connection: Any, definition: ShovelDefinition) -> tuple[str, int]:
        """Return the source's queue and its length; an empty name if it is an exchange."""
        queue = definition.text("src-queue")
        if not queue:
            return "", 0
        passive = bool(definition.value.get("src-predeclared"))
        return queue, await ensure_queue(connection, queue, definition.table("src-queue-args"), passive)
