"""Clients with sessions, at the level of the kernel: without protocol and packets."""

from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.sessions.session import Session
from gateway.testing import MemoryBroker


class Client:
    """One client and its connection, if any. It closes its session when another connection takes it over."""

    def __init__(self, broker: MemoryBroker, client_id: str = "sensor") -> None:
        self.broker = broker
        self.client_id = client_id
        self.is_connected = False

    @property
    def session(self) -> Session:
        session = self.broker.vhost.sessions.get(self.client_id)
        assert session is not None, f"{self.client_id} has no session"
        return session

    def connect(self, *, is_clean: bool = False, expiry_s: int = 60) -> bool:
        """Connect; return whether there was a session."""
        _, is_present = self.broker.vhost.sessions.open(self.client_id, is_clean, expiry_s, self)
        self.is_connected = True
        return is_present

    def leave(self) -> None:
        self.is_connected = False
        self.broker.vhost.sessions.close(self.session)

    def displaced(self) -> None:
        self.leave()

    def force_close(self, reason: str) -> None:
        self.leave()

    def subscribe(self, filter: str, qos: int = 1) -> Queue:
        subscription = subscription_to(filter, qos, client_id=self.client_id)
        queue = self.session.subscribe(self.broker.vhost.exchange("amq.topic"), subscription)
        if subscription.group:
            self.broker.vhost.sessions.groups.joined(self.session, subscription)
        return queue

    def unsubscribe(self, filter: str) -> None:
        subscription = self.session.unsubscribe(self.broker.vhost.exchange("amq.topic"), filter)
        assert subscription is not None, f"{self.client_id} has not subscribed to {filter}"
        if subscription.group:
            self.broker.vhost.sessions.groups.left(self.session, subscription)


def subscription_to(
    filter: str,
    qos: int = 1,
    *,
    client_id: str = "sensor",
    identifier: int = 0,
    no_local: bool = False,
    retain_as_published: bool = False,
) -> SubscriptionRecord:
    """Return a subscription in the default virtual host; a filter ``$share/group/...`` makes it shared."""
    group, wanted = "", filter
    if filter.startswith("$share/"):
        _, group, wanted = filter.split("/", 2)
    key = wanted.replace("/", ".").replace("+", "*")
    return SubscriptionRecord("/", client_id, filter, group, key, qos, identifier, no_local, retain_as_published)


def publish_to_topic(broker: MemoryBroker, topic: str, body: bytes = b"hi", *, is_persistent: bool = True) -> None:
    """Publish a message to the subscribers of a topic."""
    key = topic.replace("/", ".")
    broker.publish(key, body, exchange="amq.topic", is_persistent=is_persistent)


def durable_entities(broker: MemoryBroker, *kinds: str) -> list[Entity]:
    """Return the durable entities of these kinds after a crash, or of all kinds but the virtual host."""
    found = [change.entity for change in broker.store.reopened().recover() if isinstance(change, Put)]
    return [entity for entity in found if entity.kind in kinds or (not kinds and entity.kind != "vhost")]
