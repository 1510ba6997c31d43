"""Publishes of one run: where each goes, and what the broker said about it."""

from dataclasses import dataclass, field
from enum import Enum, auto


@dataclass(frozen=True, slots=True)
class PublishRoute:
    """A target of publishers, and the queues that get the message.

    ``topic_key`` is the routing key if the exchange is that of MQTT's topics.
    """

    exchange: str
    key: str
    places: frozenset[str]
    topic_key: str | None = None

    @property
    def topic(self) -> str:
        """The MQTT topic of the route."""
        return self.key.replace(".", "/")


class Fate(Enum):
    """The broker's answer to a publish."""

    UNKNOWN = auto()  # the connection ended before it said anything
    CONFIRMED = auto()
    REFUSED = auto()
    ROLLED_BACK = auto()
    WITHHELD = auto()  # a will that is not owed


@dataclass(slots=True)
class Published:
    """One publish: its number in the order of its publisher, and the places that it goes to.

    ``perhaps`` are places that may get it or not: subscriptions that began or ended meanwhile. ``topic_key`` is its
    routing key at the exchange of topics. ``is_repeated``: it was sent again, as at least once permits. ``is_resent``:
    it was sent again after the node ended, which may have delivered it at most once before it was on disk.
    ``is_delayed_will``: the next node publishes it again, if its first publish was not on disk.
    ``content_type`` and ``is_durable`` are properties that the message keeps on its way.
    """

    publisher: str
    number: int
    places: set[str]
    fate: Fate = Fate.UNKNOWN
    is_durable: bool = True
    group: int = 0  # publishes of one transaction have the same, 0 is none
    kills: int = 0  # those before it
    qos: int = 0
    topic_key: str | None = None
    perhaps: set[str] = field(default_factory=set)
    is_repeated: bool = False
    is_resent: bool = False
    is_delayed_will: bool = False
    content_type: str | None = None
    incarnation: int = 0  # of the node to which it was sent first
