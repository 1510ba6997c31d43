"""The end of a federation link at this broker."""

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpDestination
from gateway.bridges.broker_uri import parse_uri
from gateway.bridges.link import Lost
from gateway.bridges.parcel import MessageDestination
from gateway.bridges.transfer import ShovelAckMode


async def local_destination(
    dialer: AmqpDialer, name: str, vhost: str, ack_mode: ShovelAckMode, lost: Lost
) -> MessageDestination:
    """Return a destination in a virtual host of this broker."""
    connection = await dialer.connect(parse_uri("amqp://", "amqp"), name, vhost)
    try:
        channel = await connection.open_channel()
        if ack_mode is ShovelAckMode.ON_CONFIRM:
            await channel.confirm_delivery()
        return AmqpDestination(connection, channel, lost)
    except BaseException:
        connection.leave()
        raise
