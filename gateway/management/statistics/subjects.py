"""Keys of subjects in the statistics: names, not references, which would keep deleted objects in memory."""

from typing import Final, TypeAlias

from gateway.kernel.broker.connections import Peer
from gateway.kernel.queueing.queue_identity import QueueIdentity
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost

Key: TypeAlias = tuple[str | int, ...]
"""The kind of a subject and the names that identify it."""

BROKER: Final[Key] = ("broker",)
NODE: Final[Key] = ("node",)


def key_of(subject: QueueLike | Exchange | VirtualHost | Peer) -> Key:
    """Return the key of a subject."""
    if isinstance(subject, QueueLike):
        return "queue", subject.vhost_name, subject.name
    if isinstance(subject, Exchange):
        return "exchange", subject.vhost_name, subject.name
    if isinstance(subject, VirtualHost):
        return "vhost", subject.name
    return "connection", subject.name


def channel_key(peer: Peer, number: int) -> Key:
    """Return the key of a channel."""
    return "channel", peer.name, number


def publishes_key(peer: Peer, number: int, exchange: str) -> Key:
    """Return the key of a channel's publishes to an exchange."""
    return "publishes", peer.name, number, exchange


def deliveries_key(peer: Peer, number: int, queue: QueueIdentity) -> Key:
    """Return the key of a queue's deliveries to a channel."""
    return "deliveries", peer.name, number, queue.name


def route_key(exchange: Exchange, queue: QueueLike) -> Key:
    """Return the key of messages routed from an exchange to a queue."""
    return "route", exchange.vhost_name, exchange.name, queue.name
