"""What statistics remember things by: names, never the things themselves, which would stay in memory."""

from typing import Final, TypeAlias

from gateway.kernel.broker.connections import Peer
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost

Key: TypeAlias = tuple[str | int, ...]
"""The kind of something that is counted, and the names that tell it from its like."""

BROKER: Final[Key] = ("broker",)
BROKER_LONG: Final[Key] = ("broker", "long")
NODE: Final[Key] = ("node",)


def key_of(subject: Queue | Exchange | VirtualHost | Peer) -> Key:
    """Return what something is remembered by."""
    if isinstance(subject, Queue):
        return "queue", subject.vhost_name, subject.name
    if isinstance(subject, Exchange):
        return "exchange", subject.vhost_name, subject.name
    if isinstance(subject, VirtualHost):
        return "vhost", subject.name
    return "connection", subject.name


def channel_key(peer: Peer, number: int) -> Key:
    """Return what a channel is remembered by."""
    return "channel", peer.name, number


def publishes_key(peer: Peer, number: int, exchange: str) -> Key:
    """Return what the messages of a channel to an exchange are remembered by."""
    return "publishes", peer.name, number, exchange


def deliveries_key(peer: Peer, number: int, queue: Queue) -> Key:
    """Return what the messages of a queue to a channel are remembered by."""
    return "deliveries", peer.name, number, queue.name


def route_key(exchange: Exchange, queue: Queue) -> Key:
    """Return what the messages from an exchange to a queue are remembered by."""
    return "route", exchange.vhost_name, exchange.name, queue.name
