"""JSON views of traffic by channel, exchange and queue."""

from collections.abc import Generator, Iterator
from typing import TypeAlias

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.statistics.counts import counts_by_name, publish_counts
from gateway.management.statistics.subjects import deliveries_key, publishes_key, route_key
from gateway.management.views.channels import OpenChannel, channel_details
from gateway.management.views.numbers import DELIVERIES, PUBLISHES, with_rates

Steps: TypeAlias = Iterator[Fields | None]
"""Yields views, and ``None`` at points where the reactor may run other work."""


def collect(steps: Steps) -> Generator[None, None, list[Fields]]:
    """Collect the views in steps."""
    views = []
    for view in steps:
        if view is None:
            yield
        else:
            views.append(view)
    return views


def publishes_of(call: Call, channel: OpenChannel) -> list[Fields]:
    """Return the publishes of a channel by exchange."""
    return [
        {"exchange": _name(exchange, channel.peer.vhost_name), "stats": _published(call, channel, exchange)}
        for exchange in channel.info.publishes
    ]


def deliveries_of(call: Call, channel: OpenChannel) -> list[Fields]:
    """Return the deliveries to a channel by queue, without its own queue for direct replies."""
    virtual_host = call.broker.vhost_by_name.get(channel.peer.vhost_name)
    return [
        {"queue": _name(queue.name, queue.vhost_name), "stats": _delivered(call, channel, queue)}
        for queue in channel.info.deliveries
        if virtual_host is not None and virtual_host.queue_by_name.get(queue.name) is queue
    ]


def publishes_to(call: Call, exchange: Exchange) -> Steps:
    """Yield the publishes to an exchange by channel."""
    for channel in _channels_in(call, exchange.vhost_name):
        if channel is not None and exchange.name in channel.info.publishes:
            details = channel_details(call.context, channel.origin)
            yield {"channel_details": details, "stats": _published(call, channel, exchange.name)}
        yield None


def deliveries_from(call: Call, queue: QueueLike) -> Steps:
    """Yield the deliveries of a queue by channel."""
    for channel in _channels_in(call, queue.vhost_name):
        if channel is not None and queue in channel.info.deliveries:
            details = channel_details(call.context, channel.origin)
            yield {"channel_details": details, "stats": _delivered(call, channel, queue)}
        yield None


def routes_from(call: Call, exchange: Exchange) -> Steps:
    """Yield the messages routed by an exchange, by queue."""
    for each in exchange.passed_on():
        if each is None or not each[0].name:
            yield None
        else:
            queue, count = each
            yield {"queue": _name(queue.name, queue.vhost_name), "stats": _routed(call, exchange, queue, count)}


def routes_to(call: Call, queue: QueueLike) -> Steps:
    """Yield the messages routed to a queue, by exchange."""
    for exchange in list(call.broker.vhost(queue.vhost_name).exchange_by_name.values()):
        if count := exchange.passed_on_to(queue):
            yield {
                "exchange": _name(exchange.name, exchange.vhost_name),
                "stats": _routed(call, exchange, queue, count),
            }
        yield None


def _channels_in(call: Call, vhost_name: str) -> Iterator[OpenChannel | None]:
    for peer in call.broker.connections:
        if peer.vhost_name == vhost_name:
            yield from (OpenChannel(peer, info) for info in peer.channels())
        yield None


def _published(call: Call, channel: OpenChannel, exchange: str) -> Fields:
    counts = publish_counts(channel.info, channel.info.publishes[exchange])
    trend = call.trend(publishes_key(channel.peer, channel.info.number, exchange))
    return with_rates([name for name in PUBLISHES if name in counts], counts, trend)


def _delivered(call: Call, channel: OpenChannel, queue: QueueLike) -> Fields:
    trend = call.trend(deliveries_key(channel.peer, channel.info.number, queue))
    return with_rates(DELIVERIES, counts_by_name(channel.info.deliveries[queue]), trend)


def _routed(call: Call, exchange: Exchange, queue: QueueLike, count: int) -> Fields:
    return with_rates(["publish"], {"publish": count}, call.trend(route_key(exchange, queue)))


def _name(name: str, vhost_name: str) -> Fields:
    return {"name": name, "vhost": vhost_name}
