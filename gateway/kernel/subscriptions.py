"""What one session asked for, and on which terms a message that came for it is to be delivered."""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.kernel.records import SubscriptionRecord
from gateway.kernel.topics import TopicTrie

#: How the keys of topics begin that a broker tells about itself.
_OF_THE_BROKER: Final = "$SYS"

#: Routing keys whose terms are remembered before the memory is emptied.
_TERMS_KEPT: Final = 256


class Terms:
    """How a message is delivered: the most QoS, the identifiers to tell, whether it shows that it was retained.

    ``is_plain`` says that the client sees the message as every other one of its QoS does. ``own`` are the terms for a
    message that the session's client published itself, ``None`` when it wants none of them (MQTT 5.0, 3.8.3.1).
    """

    __slots__ = ("identifiers", "is_plain", "own", "qos", "retain_as_published")

    def __init__(self, matching: Sequence[SubscriptionRecord]) -> None:
        self.qos = 0
        self.identifiers: tuple[int, ...] = ()
        self.retain_as_published = False
        self.own: Terms | None = self
        for subscription in matching:
            if subscription.qos > self.qos:
                self.qos = subscription.qos
            if subscription.identifier:
                self.identifiers += (subscription.identifier,)
            if subscription.retain_as_published:
                self.retain_as_published = True
            if subscription.no_local:
                self.own = None
        if self.own is None:
            not_local = [subscription for subscription in matching if not subscription.no_local]
            self.own = Terms(not_local) if not_local else None
        self.is_plain = not self.identifiers and self.own is self


#: What is remembered of a routing key that was not looked at yet.
_UNKNOWN: Final = Terms(())


class Subscriptions:
    """The subscriptions of one session by filter; those it shares with others are kept, but match nothing here.

    ``shared`` counts these, ``to_broker`` the others that ask for topics of the broker itself. ``_alike`` are the terms
    of all others while those are the same, as they are for most clients: nobody need look which of them match.
    """

    __slots__ = ("_alike", "_by_filter", "_exact", "_patterns", "_terms", "shared", "to_broker")

    def __init__(self) -> None:
        self.shared = 0
        self.to_broker = 0
        self._alike: Terms | None = None
        self._by_filter: dict[str, SubscriptionRecord] = {}
        self._exact: dict[str, dict[str, SubscriptionRecord]] = {}
        self._patterns: TopicTrie[str, SubscriptionRecord] | None = None
        self._terms: dict[str, Terms | None] = {}

    def __len__(self) -> int:
        return len(self._by_filter)

    def __iter__(self) -> Iterator[SubscriptionRecord]:
        return iter(tuple(self._by_filter.values()))

    def get(self, filter: str) -> SubscriptionRecord | None:
        """Return what was asked for under this filter, if anything was."""
        return self._by_filter.get(filter)

    def put(self, subscription: SubscriptionRecord) -> None:
        """Keep a subscription, in place of an earlier one under the same filter."""
        self.remove(subscription.filter)
        self._by_filter[subscription.filter] = subscription
        if subscription.group:
            self.shared += 1
            return
        is_first = len(self) - self.shared == 1
        if is_first:
            self._alike = Terms([subscription])
        elif self._alike is not None and not _is_alike(self._alike, subscription):
            self._alike = None
        self.to_broker += subscription.binding_key.startswith(_OF_THE_BROKER)
        if is_pattern(subscription.binding_key):
            if self._patterns is None:
                self._patterns = TopicTrie()
            self._patterns.insert(subscription.binding_key, subscription.filter, subscription)
        else:
            self._exact.setdefault(subscription.binding_key, {})[subscription.filter] = subscription

    def remove(self, filter: str) -> SubscriptionRecord | None:
        """Forget a subscription; return it, if there was one."""
        self._terms.clear()
        subscription = self._by_filter.pop(filter, None)
        if subscription is None:
            return None
        if subscription.group:
            self.shared -= 1
            return subscription
        self.to_broker -= subscription.binding_key.startswith(_OF_THE_BROKER)
        if is_pattern(subscription.binding_key):
            assert self._patterns is not None
            self._patterns.remove(subscription.binding_key, filter)
        else:
            exact = self._exact[subscription.binding_key]
            del exact[filter]
            if not exact:
                del self._exact[subscription.binding_key]
        return subscription

    def terms(self, routing_key: str) -> Terms | None:
        """Return on which terms a message is delivered; ``None`` when no subscription matches its key."""
        terms = self._terms.get(routing_key, _UNKNOWN)
        return self._learn(routing_key) if terms is _UNKNOWN else terms

    def terms_of_a_match(self, routing_key: str) -> Terms | None:
        """Return the same of a message that some subscription matches, as do all that a binding brought.

        Those that match a pattern of the exchange's need not match that of a subscription if they are the server's
        (``may_match``), so these are looked up nevertheless.
        """
        if self._alike is not None and routing_key[:1] != "$":
            return self._alike
        return self.terms(routing_key)

    def _learn(self, routing_key: str) -> Terms | None:
        if len(self._terms) >= _TERMS_KEPT:
            self._terms.clear()
        matching = self._matching(routing_key)
        terms = self._terms[routing_key] = Terms(matching) if matching else None
        return terms

    def _matching(self, routing_key: str) -> list[SubscriptionRecord]:
        exact = self._exact.get(routing_key)
        matching = list(exact.values()) if exact else []
        if self._patterns is None:
            return matching
        if routing_key[:1] == "$":
            return matching + [s for s in self._patterns.match(routing_key) if may_match(s.binding_key, routing_key)]
        return matching + self._patterns.match(routing_key)


def _is_alike(terms: Terms, subscription: SubscriptionRecord) -> bool:
    """Whether messages that match this subscription too are delivered on the same terms."""
    is_plain = terms.is_plain and not subscription.identifier and not subscription.no_local
    return is_plain and terms.qos == subscription.qos and terms.retain_as_published == subscription.retain_as_published


def is_pattern(binding_key: str) -> bool:
    """Whether a binding key holds a word that stands for others."""
    return ("*" in binding_key or "#" in binding_key) and not {"*", "#"}.isdisjoint(binding_key.split("."))


def may_match(binding_key: str, routing_key: str) -> bool:
    """Whether a key that the pattern fits is meant by it: none that starts with ``$`` if it starts with a wildcard.

    Topics of the server are seen only by those who ask for them (MQTT-4.7.2-1).
    """
    return routing_key[:1] != "$" or binding_key[:1] not in ("*", "#")
