"""The model of all clients of a test, their groups, and the messages they must receive, for any kind of broker."""

from collections.abc import Sequence
from typing import Final

from tests.protocols.mqtt.client_model import ClientModel, Link
from tests.protocols.mqtt.message_records import Group, Inbox, Sent

#: The time after a start for which the queue of a group without members is kept, in seconds.
REJOIN_S: Final = 300


class World:
    """The clients, their groups and their messages. ``life`` counts the broker's starts.

    A subclass implements the connection to the broker. ``prefetch`` is the Receive Maximum of clients of 3.x.
    """

    def __init__(self, names: Sequence[str], groups: Sequence[tuple[str, str, int]] = (), prefetch: int = 10) -> None:
        self.prefetch = prefetch
        self.now_s = 0
        self.life = 1
        self.sent: dict[str, Sent] = {}
        self.groups = {filter: Group(filter=filter, topic=topic, qos=qos) for filter, topic, qos in groups}
        self.people = [ClientModel(self, name) for name in names]

    def new_client(self, version: int) -> Link:
        """Return a new connection that has not sent anything."""
        raise NotImplementedError

    def connected(self) -> list[ClientModel]:
        return [person for person in self.people if person.link is not None]

    def group_of(self, topic: str) -> Group | None:
        return next((group for group in self.groups.values() if group.topic == topic), None)

    def takers(self, sent: Sent) -> set[Inbox]:
        """Record a message in all inboxes that expect it; return those that must get it."""
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
        """Let all clients read what was sent to them."""
        for person in self.connected():
            assert person.link is not None
            person.receive(person.link.receive_now())

    def crashed(self) -> None:
        """Handle a crash and restart. The queue of a group may be back if its deletion was not durable."""
        self.life += 1
        for person in self.people:
            person.crashed()
        for group in self.groups.values():
            group.lingers_until_s = self.now_s + REJOIN_S

    def require_what_is_owed(self) -> None:
        """Check, after all clients reconnected and acknowledged, that no message is missing."""
        for person in self.connected():
            assert person.inbox is not None
            assert not person.inbox.owed, f"{person.name} never got {sorted(person.inbox.owed)}"
            assert not person.outgoing, f"publishes of {person.name} were not fully acknowledged"
        for filter, group in self.groups.items():
            assert not group.members or not group.owed, f"no other of {filter} got {sorted(group.owed)}"


def _matches(filter: str, topic: str) -> bool:
    """Match as in 4.7, as far as the filters of the test need it."""
    wanted, levels = filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, levels = wanted[:-1], levels[: len(wanted) - 1]
    return len(wanted) == len(levels) and all(want in ("+", level) for want, level in zip(wanted, levels, strict=True))
