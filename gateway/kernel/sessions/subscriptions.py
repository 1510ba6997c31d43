"""The subscriptions of one session, and the delivery terms that they give its messages."""

from collections.abc import Iterator, Sequence
from typing import Final

from gateway.kernel.caches import remember
from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.routing.topic_trie import TopicTrie

#: The prefix of topics that the broker publishes about itself.
_OF_THE_BROKER: Final = "$SYS"

#: The maximum number of routing keys whose terms are cached.
_TERMS_KEPT: Final = 256

#: Terms of longer routing keys are not cached: 256 of 64 KB would be 16 MB for one session.
_LONGEST_KEPT: Final = 512

#: With more subscriptions than this the index is maintained from the start: building it at once would block the loop.
_FEW: Final = 32


class Terms:
    """The terms of a delivery: maximum QoS, subscription identifiers, whether the retain flag is kept.

    ``is_plain`` means that the message needs no identifiers and no local check; plain terms are shared objects. ``own``
    are the terms for messages of the session's own client, ``None`` when it wants none of them (MQTT 5.0, 3.8.3.1).
    """

    __slots__ = ("identifiers", "is_plain", "own", "qos", "retain_as_published")

    def __init__(self, qos: int = 0, retain_as_published: bool = False, identifiers: tuple[int, ...] = ()) -> None:
        self.qos = qos
        self.retain_as_published = retain_as_published
        self.identifiers = identifiers
        self.own: Terms | None = self
        self.is_plain = not identifiers

    @staticmethod
    def of(subscription: SubscriptionRecord) -> "Terms":
        """Return the terms of one subscription."""
        if not subscription.identifier and not subscription.no_local:
            return _PLAIN[subscription.qos][subscription.retain_as_published]
        identifiers = (subscription.identifier,) if subscription.identifier else ()
        terms = Terms(subscription.qos, subscription.retain_as_published, identifiers)
        if subscription.no_local:
            terms._tell_apart(None)
        return terms

    @staticmethod
    def together(each: "Sequence[Terms]") -> "Terms":
        """Return the terms of a message that several subscriptions match: it is delivered once (MQTT-3.3.4-2)."""
        qos, retain_as_published, is_plain = 0, False, True
        for terms in each:
            if terms.qos > qos:
                qos = terms.qos
            if terms.retain_as_published:
                retain_as_published = True
            if not terms.is_plain:
                is_plain = False
        if is_plain:
            return _PLAIN[qos][retain_as_published]
        together = Terms(qos, retain_as_published, tuple(number for terms in each for number in terms.identifiers))
        not_local = [terms for terms in each if terms.own is not None]
        if len(not_local) < len(each):
            together._tell_apart(Terms.together(not_local) if not_local else None)
        return together

    def _tell_apart(self, own: "Terms | None") -> None:
        """Set different terms for messages of the session's own client."""
        self.own = own
        self.is_plain = False


#: The plain terms, by QoS and by whether the retain flag is kept.
_PLAIN: Final = tuple((Terms(qos), Terms(qos, True)) for qos in range(3))

#: Marks a routing key without cached terms.
_UNKNOWN: Final = Terms()

#: The dictionaries of a session that has not subscribed, and of one whose messages need no matching: never written to.
_NO_SUBSCRIPTIONS: Final[dict[str, SubscriptionRecord]] = {}
_NO_TERMS: Final[dict[str, Terms | None]] = {}


class Subscriptions:
    """The subscriptions of one session by filter; shared ones are stored, but match nothing here.

    ``shared`` counts the shared ones, ``to_broker`` others for topics of the broker itself. ``_alike`` are the terms of
    all non-shared subscriptions while they are equal, as for most clients: then no matching is needed. ``_usual_key``
    is the last routing key that is no topic of the server; the next message often has the same. The ``_index`` is
    built when matching is needed, or when there are many subscriptions.
    """

    __slots__ = ("_alike", "_by_filter", "_index", "_terms", "_usual_key", "shared", "to_broker")

    def __init__(self) -> None:
        self.shared = 0
        self.to_broker = 0
        self._alike: Terms | None = None
        self._usual_key: str | None = None
        self._by_filter = _NO_SUBSCRIPTIONS
        self._index: TopicTrie[str, Terms] | None = None
        self._terms = _NO_TERMS

    def __len__(self) -> int:
        return len(self._by_filter)

    def __iter__(self) -> Iterator[SubscriptionRecord]:
        return iter(tuple(self._by_filter.values()))

    def get(self, filter: str) -> SubscriptionRecord | None:
        """Return the subscription with this filter."""
        return self._by_filter.get(filter)

    def put(self, subscription: SubscriptionRecord) -> None:
        """Add a subscription, replacing one with the same filter."""
        self.remove(subscription.filter)
        if self._by_filter is _NO_SUBSCRIPTIONS:
            self._by_filter = {}
        self._by_filter[subscription.filter] = subscription
        if subscription.group:
            self.shared += 1
            return
        terms = Terms.of(subscription)
        is_first = len(self) - self.shared == 1
        if is_first:
            self._alike = terms
        elif self._alike is not terms:
            self._alike = None
        self.to_broker += subscription.binding_key.startswith(_OF_THE_BROKER)
        if self._index is not None:
            self._index.insert(subscription.binding_key, subscription.filter, terms)
        elif len(self) > _FEW:
            self._make_index()

    def remove(self, filter: str) -> SubscriptionRecord | None:
        """Remove a subscription and return it, if it exists."""
        self._terms.clear()
        subscription = self._by_filter.pop(filter, None)
        if subscription is None:
            return None
        if subscription.group:
            self.shared -= 1
            return subscription
        self.to_broker -= subscription.binding_key.startswith(_OF_THE_BROKER)
        if self._index is not None:
            self._index.remove(subscription.binding_key, filter)
        return subscription

    def has_key(self, binding_key: str, is_acknowledged: bool) -> bool:
        """Return whether a non-shared subscription has this binding key and kind of QoS: 0, or above 0."""
        if self._index is not None:
            return any(bool(terms.qos) is is_acknowledged for terms in self._index.at(binding_key))
        return any(
            other.binding_key == binding_key and bool(other.qos) is is_acknowledged and not other.group
            for other in self._by_filter.values()
        )

    def terms(self, routing_key: str) -> Terms | None:
        """Return the terms of a message; ``None`` when no subscription matches its key."""
        terms = self._terms.get(routing_key, _UNKNOWN)
        return self._learn(routing_key) if terms is _UNKNOWN else terms

    def terms_of_a_match(self, routing_key: str) -> Terms | None:
        """Return the terms of a message that some subscription is known to match, because a binding routed it.

        Topics of the server are matched nevertheless: a pattern that matches them in the exchange may not match in MQTT
        (``may_match``).
        """
        alike = self._alike
        if alike is not None:
            if routing_key is self._usual_key:
                return alike
            if not routing_key.startswith("$"):
                self._usual_key = routing_key
                return alike
        return self.terms(routing_key)

    def _learn(self, routing_key: str) -> Terms | None:
        index = self._make_index() if self._index is None else self._index
        matching = index.match(routing_key, begins_with_its_word=routing_key[:1] == "$")  # MQTT-4.7.2-1
        terms = Terms.together(matching) if matching else None
        if len(routing_key) <= _LONGEST_KEPT:
            if self._terms is _NO_TERMS:
                self._terms = {}
            remember(self._terms, routing_key, terms, _TERMS_KEPT)
        return terms

    def _make_index(self) -> TopicTrie[str, Terms]:
        """Return the terms of all non-shared subscriptions, by filter."""
        index = self._index = TopicTrie[str, Terms]()
        for subscription in self._by_filter.values():
            if not subscription.group:
                index.insert(subscription.binding_key, subscription.filter, Terms.of(subscription))
        return index


def is_pattern(binding_key: str) -> bool:
    """Return whether a binding key contains a wildcard."""
    return ("*" in binding_key or "#" in binding_key) and not {"*", "#"}.isdisjoint(binding_key.split("."))


def may_match(binding_key: str, routing_key: str) -> bool:
    """Return whether a matching key counts as a match: one with ``$`` does not if the pattern starts with a wildcard.

    Wildcards do not match topics of the server (MQTT-4.7.2-1).
    """
    return routing_key[:1] != "$" or binding_key[:1] not in ("*", "#")
