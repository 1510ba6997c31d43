"""The history of one run: publishes, promises and deliveries, and the rules that must hold between them.

A message is known by its body, ``publisher:number``. A place is what holds messages for readers: a queue, a session, a
subscription.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gateway.simulation.findings import Findings
from gateway.simulation.publishes import Fate, Published
from gateway.simulation.subscriptions import TopicSubscriptions

#: What ``MessagePlace.settled`` has for a removal that is on disk.
FOR_EVER: Final = -1


@dataclass(slots=True)
class MessagePlace:
    """A place that holds messages. Its rules say what may be promised of it.

    ``keeps``: nothing but a reader removes a message. ``is_ordered``: first deliveries are in the order of publishing.
    ``survives``: its messages survive the end of the process. ``keeps_transient``: also those that are not durable,
    while the process lives. ``marks_second``: a second delivery is marked as one. ``qos`` is that of an MQTT
    subscription.
    """

    name: str
    keeps: bool = True
    is_ordered: bool = True
    survives: bool = True
    keeps_transient: bool = True
    marks_second: bool = True
    qos: int | None = None
    delivered: dict[str, int] = field(default_factory=dict)  # body: the incarnation of the node that delivered it last
    unmarked: dict[str, int] = field(default_factory=dict)  # the same of deliveries that are not marked as repeated
    first: dict[str, int] = field(default_factory=dict)  # body: the number of kills at the first delivery
    consumed: set[str] = field(default_factory=set)
    settled: dict[str, int] = field(default_factory=dict)  # body: the number of kills when its removal was answered
    newest: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))


class MessageHistory:
    """Owns the publishes and the places. ``findings`` gets each broken promise. ``incarnation`` counts the starts of
    the node, ``kills`` those that came without a stop in order.
    """

    def __init__(self, findings: Findings) -> None:
        self.published: dict[str, Published] = {}
        self.places: dict[str, MessagePlace] = {}
        self.subscriptions = TopicSubscriptions(self.published)
        self.incarnation = 0
        self.kills = 0
        self._findings = findings
        self._numbers: dict[str, int] = defaultdict(int)

    def killed(self) -> None:
        """Count an end of the node without a stop in order: what it had not on disk is lost."""
        self.kills += 1

    def add_place(self, place: MessagePlace) -> MessagePlace:
        """Add a place."""
        self.places[place.name] = place
        return place

    # Publishers

    def publish(
        self,
        publisher: str,
        places: Iterable[str],
        *,
        is_durable: bool = True,
        group: int = 0,
        qos: int | None = None,
        topic_key: str | None = None,
        content_type: str | None = None,
    ) -> str:
        """Record a publish; return the body of its message. ``qos`` is MQTT's, or follows from ``is_durable``."""
        self._numbers[publisher] += 1
        number = self._numbers[publisher]
        body = f"{publisher}:{number}"
        published = Published(
            publisher,
            number,
            set(places),
            is_durable=is_durable if qos is None else qos > 0,
            group=group,
            kills=self.kills,
            qos=int(is_durable) if qos is None else qos,
            topic_key=topic_key,
            incarnation=self.incarnation,
            content_type=content_type,
        )
        self.published[body] = published
        self.subscriptions.published(published)
        return body

    def decided(self, body: str, fate: Fate) -> None:
        """Record what the broker said about a publish."""
        self.published[body].fate = fate
        if fate is Fate.WITHHELD:
            there = [place.name for place in self.places.values() if body in place.delivered]
            self._findings.require(not there, "a will that is not owed is not published", f"{body} in {there}")

    # Readers

    def received(self, name: str, reader: str, body: str, *, is_redelivered: bool, removes: bool = False) -> None:
        """Record a delivery to a reader, which is one consumer of one connection. ``removes``: it needs no answer."""
        if not body:  # the removal of a retained message has no body, and is delivered to subscribers too
            return
        place, published = self.places[name], self.published.get(body)
        if published is None:
            self._findings.add("only what was published is delivered", f"{name}: {body!r} to {reader}")
            return
        self._check_fate(place, published, body)
        if not published.is_repeated:
            self._check_repetition(place, published, f"{body} from {name} to {reader}", body, is_redelivered)
            if place.is_ordered and not is_redelivered:
                self._check_order(place, reader, published, f"{body} from {name} to {reader}")
        place.delivered[body] = self.incarnation
        place.first.setdefault(body, self.kills)
        if removes:
            place.consumed.add(body)

    def check_properties(self, reader: str, body: str, content_type: str | None, is_durable: bool | None) -> None:
        """Check the properties of a message that came; ``None`` for ``is_durable`` if its protocol does not tell."""
        published = self.published.get(body)
        if published is None:
            return
        is_kept = content_type == published.content_type and is_durable in (None, published.is_durable)
        self._findings.require(
            is_kept,
            "a message keeps its properties",
            f"{body} of type {published.content_type}{', durable' * published.is_durable}"
            f" came to {reader} as {content_type}{', durable' * bool(is_durable)}",
        )

    def _check_fate(self, place: MessagePlace, published: Published, body: str) -> None:
        require, where = self._findings.require, f"{body} came from {place.name}"
        require(place.name in published.places | published.perhaps, "a message goes where it is routed", where)
        require(published.fate is not Fate.ROLLED_BACK, "a transaction that was rolled back has no effect", where)
        require(published.fate is not Fate.REFUSED, "a refused message is not delivered", where)
        require(published.fate is not Fate.WITHHELD, "a will that is not owed is not published", where)

    def _check_repetition(
        self, place: MessagePlace, published: Published, what: str, body: str, is_redelivered: bool
    ) -> None:
        require, last = self._findings.require, place.delivered.get(body)
        is_back = place.settled.get(body) in (self.kills, FOR_EVER) and place.survives
        require(not is_back, "an acknowledged message does not come again", what)
        if not is_redelivered and place.marks_second:
            # the marked one may come first: the other connection may be slower
            require(place.unmarked.get(body) != self.incarnation, "a second delivery is marked as one", what)
            place.unmarked[body] = self.incarnation
        if place.qos is not None and (qos := min(place.qos, published.qos)) != 1:
            # what is not durable at the subscriber, or not promised, is delivered before the publish is on disk
            is_published_again = published.is_resent or (published.is_delayed_will and last != self.incarnation)
            is_allowed = (qos == 0 or not place.survives) and is_published_again
            require(last is None or is_allowed, f"a message of QoS {qos} comes once", what)

    def _check_order(self, place: MessagePlace, reader: str, published: Published, what: str) -> None:
        key = reader, published.publisher
        newest = place.newest[key]
        self._findings.require(
            published.number > newest, "messages of a publisher come in its order", f"{what} after {newest}"
        )
        place.newest[key] = published.number

    def consumed(self, name: str, body: str) -> None:
        """Record that a reader acknowledged a message; whether the broker knows is open."""
        self.places[name].consumed.add(body)

    def settled(self, name: str, bodies: Iterable[str], *, for_ever: bool = False) -> None:
        """Record that the broker knows of acknowledgements: it answered a later request.

        ``for_ever``: the answer says that they are on disk.
        """
        place = self.places[name]
        place.settled.update(dict.fromkeys(bodies, FOR_EVER if for_ever else self.kills))

    # The end

    def check_losses(self, has_restarted: bool) -> None:
        """Check that each promised message has been read, once all places were read until they were empty."""
        for body, published in self.published.items():
            for name in sorted(published.places):
                place = self.places[name]
                is_kept = place.keeps and (published.is_durable or place.keeps_transient)
                is_promised = is_kept and (not has_restarted or (published.is_durable and place.survives))
                if published.fate is Fate.CONFIRMED and is_promised and body not in place.consumed:
                    self._findings.add("a confirmed message is not lost", f"{body} is missing in {name}")

    def check_transactions(self) -> None:
        """Check that each transaction without an answer has an effect as a whole, or none."""
        groups: dict[int, list[tuple[str, Published]]] = defaultdict(list)
        for body, published in self.published.items():
            if published.group and published.fate is Fate.UNKNOWN:
                groups[published.group].append((body, published))
        for group in groups.values():
            there = {
                body in self.places[name].consumed
                for body, published in group
                for name in published.places
                if self._tells_of_durability(published, body, self.places[name])
            }
            self._findings.require(
                len(there) <= 1, "a transaction is whole", f"of {', '.join(body for body, _ in group)} a part is there"
            )

    def _tells_of_durability(self, published: Published, body: str, place: MessagePlace) -> bool:
        """Whether the presence of a message shows that its transaction is durable.

        A message may be delivered before that, and be lost with the process elsewhere. A place that does not survive
        is empty after a stop in order, too, and may not be there for a while.
        """
        has_ended = self.incarnation > 1
        was_early = self.kills > published.kills and place.first.get(body) == published.kills
        return place.keeps and (not has_ended or place.survives) and not was_early
