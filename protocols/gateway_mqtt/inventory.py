"""Counts of the MQTT sessions, subscriptions and messages of one virtual host."""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final

from gateway.kernel.queueing.queue import Queue
from gateway.kernel.sessions.session import Session
from gateway.kernel.vhosts.virtual_host import VirtualHost

#: Sessions counted in one step.
_STEP_SIZE: Final = 50


@dataclass(slots=True)
class Inventory:
    """Counts of sessions, subscriptions and messages.

    ``maximum`` is the highest number of clients connected at the same time. ``subscriptions`` excludes shared ones.
    ``stored`` counts queued and retained messages, ``stored_bytes`` their bodies, ``inflight`` the messages sent and
    not acknowledged, ``dropped`` those dropped by full queues since the start. ``sys_subscribers`` are the
    sessions subscribed to ``$SYS`` topics.
    """

    total: int
    connected: int
    maximum: int
    expired: int
    retained: int
    stored: int
    stored_bytes: int
    dropped: int
    subscriptions: int = 0
    shared_subscriptions: int = 0
    inflight: int = 0
    sys_subscribers: list[Session] = field(default_factory=list)

    @property
    def disconnected(self) -> int:
        """The number of sessions without a connected client."""
        return self.total - self.connected


def inventory_of(vhost: VirtualHost) -> Generator[None, None, Inventory]:
    """Count a virtual host, some sessions in each step; return the counts."""
    sessions, retained = vhost.sessions, vhost.retained
    inventory = Inventory(
        total=len(sessions),
        connected=sessions.connected,
        maximum=sessions.most_connected,
        expired=sessions.expired,
        retained=retained.count,
        stored=retained.count,
        stored_bytes=retained.body_bytes,
        dropped=sessions.dropped,
    )
    for number, session in enumerate(sessions.subscribers()):
        _add(inventory, session)
        if number % _STEP_SIZE == 0:
            yield
    return inventory


def _add(inventory: Inventory, session: Session) -> None:
    """Add one session and its own queues; the queues of shared subscriptions are not counted."""
    if session.subscription_count:
        subscriptions = session.subscriptions
        inventory.subscriptions += len(subscriptions) - subscriptions.shared
        inventory.shared_subscriptions += subscriptions.shared
        if subscriptions.to_broker:
            inventory.sys_subscribers.append(session)
    for queue in session.own_queues():
        inventory.inflight += queue.unsettled
        inventory.stored += len(queue) + queue.unsettled
        if isinstance(queue, Queue):
            inventory.stored_bytes += queue.ready.bytes + queue.held.all.bytes
        inventory.dropped += queue.counters.dropped
