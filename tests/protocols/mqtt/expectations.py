"""What a model of clients books of each message: who is to get it, who got it, and how."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Sent:
    """A message. ``sends`` counts the PUBLISH packets that its publisher wrote, ``taken_by`` are who has to get it."""

    body: str
    publisher: str
    number: int
    topic: str
    qos: int
    sends: int = 0
    taken_by: "set[Inbox]" = field(default_factory=set)


@dataclass(frozen=True)
class Arrival:
    """A message as it reached an application: over which connection, in which life of the broker."""

    qos: int
    connection: int
    life: int


@dataclass(eq=False)
class Inbox:
    """What a session, or the group it shares with, may get (``expected``, with the level of its queue) and must get.

    ``lenient`` are messages that somebody may have taken along who left the group.
    """

    expected: dict[str, int] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)
    lenient: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Group(Inbox):
    """Clients that share a filter.

    After a crash that left it without members its queue still waits for some until ``lingers_until_s``.
    """

    filter: str = ""
    topic: str = ""
    qos: int = 0
    members: set[str] = field(default_factory=set)
    lingers_until_s: int = 0

    def left_by(self, name: str) -> None:
        """A member is gone, and maybe with it what it had been sent; the queue goes with the last."""
        if name in self.members:
            self.members.remove(name)
            self.lenient.update(self.expected)
            self.owed.clear()
            self.lingers_until_s = 0
