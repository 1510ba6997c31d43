"""ACK and NACK: lookup of the deliveries, and their settlement (1.2)."""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.ledger import Delivery, settle_all
from gateway_stomp.errors import StompError
from gateway_stomp.scope import Scope
from gateway_stomp.subscribing import Subscribing
from gateway_stomp.subscription import AckMode, Subscription
from gateway_stomp.translate import truth_of
from gateway_stomp.versions import Version

#: Separates the parts of a message-id, as with RabbitMQ: the subscription's tag, the session, a number.
_SEPARATOR: Final = "@@"

#: Digits of the largest number in a message-id.
_MOST_DIGITS: Final = 18

#: Looked up once: access to an enumeration's member is slow where the source is interpreted.
_INDIVIDUAL: Final = AckMode.INDIVIDUAL


class Settling:
    """Settles the deliveries of one connection's subscriptions.

    ``_header`` is the name of the header with the message-id, ``_separator`` stands between its parts.
    """

    __slots__ = ("_header", "_scope", "_separator", "_subscribing")

    def __init__(self, scope: Scope, subscribing: Subscribing) -> None:
        self._scope = scope
        self._subscribing = subscribing
        self._header = "id" if scope.version is Version.V12 else "message-id"
        self._separator = f"{_SEPARATOR}{scope.session}{_SEPARATOR}"

    def accept(self, headers: Mapping[str, str]) -> None:
        """Handle an ACK outside of transactions; in mode ``client-individual`` one delivery, without a list.

        :raises StompError: as ``take``.
        """
        subscription, number = self._find_delivery("ACK", headers)
        if subscription.mode is _INDIVIDUAL:
            delivery = subscription.ledger.take(number)
            if delivery is None:
                raise _unknown(number)
            subscription.counters.ack += 1
            delivery.queue.accept(delivery.entry)
            if delivery.consumer is not None:
                delivery.consumer.settled()
        else:
            settle_all(self._taken(subscription, number, DeliveryOutcome.ACCEPTED), DeliveryOutcome.ACCEPTED)
        self._subscribing.remove_if_settled(subscription)

    def settle(self, verb: str, headers: Mapping[str, str]) -> None:
        """Handle a NACK outside of transactions. :raises StompError: as ``take``."""
        deliveries, outcome = self.take(verb, headers)
        settle_all(deliveries, outcome)

    def take(self, verb: str, headers: Mapping[str, str]) -> tuple[list[Delivery], DeliveryOutcome]:
        """Remove and return the deliveries of an ACK or NACK; the caller settles them.

        In mode ``client`` these are all deliveries of the subscription up to the given one. :raises StompError: when
        the delivery is not outstanding.
        """
        subscription, number = self._find_delivery(verb, headers)
        outcome = DeliveryOutcome.ACCEPTED if verb == "ACK" else self._refusal(headers)
        deliveries = self._taken(subscription, number, outcome)
        self._subscribing.remove_if_settled(subscription)
        return deliveries, outcome

    def restore(self, deliveries: list[Delivery]) -> None:
        """Restore deliveries that were removed by ``take``: their transaction was aborted."""
        by_subscription: dict[Subscription, list[Delivery]] = {}
        for delivery in deliveries:
            assert delivery.consumer is not None
            subscriber = delivery.consumer.subscriber
            assert isinstance(subscriber, Subscription)
            by_subscription.setdefault(subscriber, []).append(delivery)
        for subscription, restored in by_subscription.items():
            self._subscribing.restore(subscription, restored)

    def _taken(self, subscription: Subscription, number: int, outcome: DeliveryOutcome) -> list[Delivery]:
        deliveries = subscription.ledger.remove(number, subscription.mode is AckMode.CLIENT) if number else None
        if not deliveries:
            raise _unknown(number)
        if outcome is DeliveryOutcome.ACCEPTED:
            subscription.counters.ack += len(deliveries)
        return deliveries

    def _refusal(self, headers: Mapping[str, str]) -> DeliveryOutcome:
        requeue = truth_of(headers, "requeue")
        is_requeued = self._scope.settings.nack_requeues if requeue is None else requeue
        return DeliveryOutcome.REQUEUED if is_requeued else DeliveryOutcome.REJECTED

    def _find_delivery(self, verb: str, headers: Mapping[str, str]) -> tuple[Subscription, int]:
        """Return the subscription and the number of the delivery.

        The message-id contains both. The ``subscription`` header of 1.1 is redundant, and optional as with RabbitMQ.
        """
        name = self._header
        value = headers.get(name)
        if value is None:
            raise StompError("Missing header", f'"{verb}" must include the "{name}" header\n')
        tag, _, rest = value.partition(self._separator)
        if not (rest.isascii() and rest.isdecimal() and len(rest) <= _MOST_DIGITS):
            raise StompError("Invalid header", f'"{verb}" must include a valid "{name}" header\n')
        subscription = self._subscribing.named(tag)
        if subscription is None:
            raise _unknown(int(rest))
        return subscription, int(rest)


def _unknown(number: int) -> StompError:
    return StompError("Message not found", f"unknown delivery tag {number}\n")
