"""The subscriptions of a client: they outlive its connections."""

from collections.abc import Callable
from typing import TypeAlias

from gateway_jetstream.codec import encoder
from gateway_jetstream.codec.frames import Delivered

OnMessage: TypeAlias = Callable[[Delivered], None]


class NatsSubscription:
    """A subject, and who takes its messages, until it is stopped."""

    __slots__ = ("_owner", "on_message", "queue_group", "sid", "subject")

    def __init__(
        self, owner: "NatsSubscriptions", sid: int, subject: str, queue_group: str, on_message: OnMessage
    ) -> None:
        self._owner = owner
        self.sid = sid
        self.subject = subject
        self.queue_group = queue_group
        self.on_message = on_message

    def stop(self) -> None:
        """End the subscription; safe to call twice."""
        self._owner.remove(self.sid)


class NatsSubscriptions:
    """All subscriptions by number. ``send`` sends bytes if there is a connection."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._next_sid = 1
        self._by_sid: dict[int, NatsSubscription] = {}

    def __len__(self) -> int:
        return len(self._by_sid)

    def add(self, subject: str, queue_group: str, on_message: OnMessage) -> NatsSubscription:
        """Subscribe now, and on each later connection. :raises NatsError: for an invalid subject."""
        encoder.checked_subject(subject)
        if queue_group:
            encoder.checked_subject(queue_group)
        subscription = NatsSubscription(self, self._next_sid, subject, queue_group, on_message)
        self._next_sid += 1
        self._by_sid[subscription.sid] = subscription
        self._send(encoder.subscribe(subject, queue_group, subscription.sid))
        return subscription

    def remove(self, sid: int) -> None:
        """Unsubscribe."""
        if self._by_sid.pop(sid, None) is not None:
            self._send(encoder.unsubscribe(sid))

    def send_all(self) -> None:
        """Subscribe on a new connection."""
        for each in self._by_sid.values():
            self._send(encoder.subscribe(each.subject, each.queue_group, each.sid))

    def deliver(self, message: Delivered) -> None:
        """Pass a message on; one that was on its way when its subscription was stopped is dropped."""
        subscription = self._by_sid.get(message.sid)
        if subscription is not None:
            subscription.on_message(message)
