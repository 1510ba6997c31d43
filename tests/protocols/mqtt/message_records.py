"""The records of the client model about each message: its expected receivers and its deliveries."""

from dataclasses import dataclass, field


@dataclass(eq=False)
class Sent:
    """A message. ``sends`` counts the PUBLISH packets of its publisher, ``taken_by`` are its expected receivers."""

    body: str
    publisher: str
    number: int
    topic: str
    qos: int
    sends: int = 0
    taken_by: "set[Inbox]" = field(default_factory=set)


@dataclass(frozen=True)
class Arrival:
    """One delivery of a message: the connection, and the life of the broker between two crashes."""

    qos: int
    connection: int
    life: int


@dataclass(eq=False)
class Inbox:
    """Messages that a session, or its group, may get (``expected``, with the queue's QoS) and must get.

    ``lenient`` are messages that a member may have received before it left the group.
    """

    expected: dict[str, int] = field(default_factory=dict)
    owed: set[str] = field(default_factory=set)
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)
    lenient: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Group(Inbox):
    """Clients with the same shared subscription.

    After a crash, the queue of a group without members remains until ``lingers_until_s``.
    """

    filter: str = ""
    topic: str = ""
    qos: int = 0
    members: set[str] = field(default_factory=set)
    lingers_until_s: int = 0

    def left_by(self, name: str) -> None:
        """Remove a member, and allow the loss of its unfinished deliveries; the last one removes the queue."""
        if name in self.members:
            self.members.remove(name)
            self.lenient.update(self.expected)
            self.owed.clear()
            self.lingers_until_s = 0
