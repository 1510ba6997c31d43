"""Periodic checks of an open connection: the size of its unsettled deliveries, and acknowledgement timeouts."""

from gateway.kernel.errors import PreconditionFailed
from gateway_amqp.connection import Connection


def check_unsettled_size(connection: Connection) -> None:
    """Stop deliveries while the peer's unsettled ones are too large.

    Deliveries resume when the unsettled size has fallen by a quarter.
    """
    channels, outbox = connection.channels.open_by_number.values(), connection.outbox
    size = sum(channel.consuming.unsettled_size for channel in channels)
    limit = connection.settings.max_unsettled_size
    is_full = size > (limit * 3 // 4 if outbox.is_full else limit)
    if is_full != outbox.is_full:
        outbox.fill(is_full)
        if is_full:
            connection.driver.log("deliveries held back", unsettled_bytes=size, limit=limit)


def check_consumer_timeouts(connection: Connection) -> None:
    """Close the channels whose consumers exceed the acknowledgement timeout."""
    settings = connection.settings
    now_s, default_ms = settings.broker.clock.monotonic_s(), settings.consumer_timeout_ms
    for number, channel in list(connection.channels.open_by_number.items()):
        limit_ms = channel.consuming.exceeded_timeout_ms(now_s, default_ms)
        if limit_ms is not None:
            refusal = (
                f"delivery acknowledgement on channel {number} timed out. Timeout value used: {limit_ms} ms. "
                "This timeout value can be configured, see consumers doc guide to learn more"
            )
            connection.refuse(PreconditionFailed(refusal), number, 0, 0)
