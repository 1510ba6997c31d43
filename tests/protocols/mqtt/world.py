"""All clients of a test, the groups they share messages in, and what is owed to whom, whichever broker serves them."""

from collections.abc import Sequence
from typing import Final

from tests.protocols.mqtt.expectations import Group, Inbox, Sent
from tests.protocols.mqtt.people import Link, Person

#: How long the queue of a group waits after a start, in seconds.
REJOIN_S: Final = 300


class World:
    """The people there are, their groups and their messages. ``life`` counts the broker's starts.

    A subclass says how to reach the broker. ``prefetch`` is how much of QoS 1 and 2 a client of 3.x gets at a time.
    """

    def __init__(self, names: Sequence[str], groups: Sequence[tuple[str, str, int]] = (), prefetch: int = 10) -> None:
        self.prefetch = prefetch
        self.now_s = 0
        self.life = 1
        self.sent: dict[str, Sent] = {}
        self.groups = {filter: Group(filter=filter, topic=topic, qos=qos) for filter, topic, qos in groups}
        self.people = [Person(self, name) for name in names]

    def stranger(self, version: int) -> Link:
        """Return a new connection on which nothing was said yet."""
        raise NotImplementedError

    def connected(self) -> list[Person]:
        return [person for person in self.people if person.link is not None]

    def group_of(self, topic: str) -> Group | None:
        return next((group for group in self.groups.values() if group.topic == topic), None)

    def takers(self, sent: Sent) -> set[Inbox]:
        """Tell everybody who is to get a message to expect it; return those who must."""
        takers: set[Inbox] = set()
        group = self.group_of(sent.topic)
        if group is not None and (group.members or self.now_s < group.lingers_until_s):
            group.expected[sent.body] = 1
            takers |= {group} if group.members else set()
        for person in self.people:
            wanted = [qos for filter, qos in person.subscriptions.items() if _matches(filter, sent.topic)]
            if person.inbox is not None and wanted:
                person.inbox.expected.setdefault(sent.body, min(1, max(wanted)))
                if max(wanted):
                    takers.add(person.inbox)
        return takers

    def absorb(self) -> None:
        """Let everybody hear what is said to them."""
        for person in self.connected():
            assert person.link is not None
            person.hear(person.link.hear_now())

    def crashed(self) -> None:
        """The broker died and was started again. A group's queue may be back that was deleted, but not durably."""
        self.life += 1
        for person in self.people:
            person.crashed()
        for group in self.groups.values():
            group.lingers_until_s = self.now_s + REJOIN_S

    def require_what_is_owed(self) -> None:
        """Check, once everybody is connected and did what was due, that nobody misses anything."""
        for person in self.connected():
            assert person.inbox is not None
            assert not person.inbox.owed, f"{person.name} never got {sorted(person.inbox.owed)}"
            assert not person.outgoing, f"publishes of {person.name} were never answered to their end"
        for filter, group in self.groups.items():
            assert not group.members or not group.owed, f"nobody of {filter} got {sorted(group.owed)}"


def _matches(filter: str, topic: str) -> bool:
    """Enough of section 4.7 for the filters of the machine."""
    wanted, levels = filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, levels = wanted[:-1], levels[: len(wanted) - 1]
    return len(wanted) == len(levels) and all(want in ("+", level) for want, level in zip(wanted, levels, strict=True))
