"""What clients published, were promised and received in one run, and the promises that must hold between them.

A message is known by its body, ``publisher:number``. A place is what holds messages for readers: a queue, a session, a
subscription.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from gateway.simulation.findings import Findings


class Fate(Enum):
    """What the broker said about a publish."""

    UNKNOWN = auto()  # the connection ended before it said anything
    CONFIRMED = auto()
    REFUSED = auto()
    ROLLED_BACK = auto()


@dataclass(slots=True)
class Published:
    """One publish: its number in the order of its publisher, and the places that it goes to."""

    publisher: str
    number: int
    places: frozenset[str]
    fate: Fate = Fate.UNKNOWN
    is_durable: bool = True
    group: int = 0  # publishes of one transaction have the same, 0 is none


@dataclass(slots=True)
class MessagePlace:
    """What holds messages. Its rules say what may be promised of it.

    ``keeps``: nothing but a reader removes a message. ``is_ordered``: first deliveries are in the order of publishing.
    ``survives``: its messages survive the end of the process.
    """

    name: str
    keeps: bool = True
    is_ordered: bool = True
    survives: bool = True
    delivered: dict[str, int] = field(default_factory=dict)  # body: the incarnation of the node that delivered it last
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
        self.incarnation = 0
        self.kills = 0
        self._findings = findings
        self._numbers: dict[str, int] = defaultdict(int)

    def add_place(self, place: MessagePlace) -> MessagePlace:
        """Add a place."""
        self.places[place.name] = place
        return place

    # Publishers

    def publish(self, publisher: str, places: Iterable[str], *, is_durable: bool = True, group: int = 0) -> str:
        """Record a publish; return the body of its message."""
        self._numbers[publisher] += 1
        number = self._numbers[publisher]
        body = f"{publisher}:{number}"
        self.published[body] = Published(publisher, number, frozenset(places), is_durable=is_durable, group=group)
        return body

    def decided(self, body: str, fate: Fate) -> None:
        """Record what the broker said about a publish."""
        self.published[body].fate = fate

    # Readers

    def received(self, name: str, reader: str, body: str, *, is_redelivered: bool, removes: bool = False) -> None:
        """Record a delivery to a reader, which is one consumer of one connection. ``removes``: it needs no answer."""
        place, published = self.places[name], self.published.get(body)
        if published is None:
            self._findings.add("only what was published is delivered", f"{name}: {body!r} to {reader}")
            return
        require = self._findings.require
        require(name in published.places, "a message goes where it is routed", f"{body} came from {name}")
        require(published.fate is not Fate.ROLLED_BACK, "a transaction that was rolled back has no effect", body)
        require(published.fate is not Fate.REFUSED, "a refused message is not delivered", f"{body} came from {name}")
        require(
            place.settled.get(body) != self.kills or not place.survives,
            "an acknowledged message does not come again",
            f"{body} from {name} to {reader}",
        )
        if not is_redelivered:
            require(
                place.delivered.get(body) != self.incarnation,
                "a second delivery is marked as one",
                f"{body} from {name} to {reader}",
            )
            if place.is_ordered:
                key = reader, published.publisher
                require(
                    published.number > place.newest[key],
                    "messages of a publisher come in its order",
                    f"{body} from {name} to {reader} after {place.newest[key]}",
                )
                place.newest[key] = published.number
        place.delivered[body] = self.incarnation
        if removes:
            place.consumed.add(body)

    def consumed(self, name: str, body: str) -> None:
        """Record that a reader acknowledged a message; whether the broker knows is open."""
        self.places[name].consumed.add(body)

    def settled(self, name: str, bodies: Iterable[str]) -> None:
        """Record that the broker knows of acknowledgements: it answered a later request."""
        place = self.places[name]
        place.settled.update(dict.fromkeys(bodies, self.kills))

    # The end

    def check_losses(self, has_restarted: bool) -> None:
        """Check that each promised message has been read, once all places were read until they were empty."""
        for body, published in self.published.items():
            for name in sorted(published.places):
                place = self.places[name]
                is_promised = place.keeps and (not has_restarted or (published.is_durable and place.survives))
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
                if self.places[name].keeps
            }
            self._findings.require(
                len(there) <= 1, "a transaction is whole", f"of {', '.join(body for body, _ in group)} a part is there"
            )
