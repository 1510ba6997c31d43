"""Repeated kills under load: every client gets its messages as often as its QoS allows.

The clients and their checks are those of ``tests/protocols/mqtt/client_model.py``, on sockets.
"""

import random
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.durability.mqtt_link import SocketLink
from tests.protocols.mqtt.client_model import ClientModel, Link
from tests.protocols.mqtt.world import World
from tests.running import Gateway
from tests.waiting import wait_until_stable

KILLS: Final = 6
PUBLISHERS: Final = ("ann", "bob")
SUBSCRIBERS: Final = {
    "cyd": {"a/#": 2},
    "dan": {"a/+": 1, "a/b": 2},
    "eve": {"$share/g/g/1": 2},
    "fay": {"$share/g/g/1": 2},
}
GROUPS: Final = (("$share/g/g/1", "g/1", 2),)
TOPICS: Final = ("a/b", "a/c", "g/1")

#: The maximum number of unacknowledged publishes of a client.
WINDOW: Final = 10


class ProcessWorld(World):
    """The clients of a gateway in a separate process."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__((*PUBLISHERS, *SUBSCRIBERS), GROUPS)
        self.gateway = gateway
        self.rng = random.Random()

    def new_client(self, version: int) -> Link:
        return SocketLink(self.gateway.addresses["mqtt"], version)

    def all_connect(self) -> None:
        for number, person in enumerate(self.people):
            person.connect(version=4 + number % 2, is_clean=False, lasts=True, window=WINDOW)

    def converse(self, seconds: float) -> None:
        """Publish and acknowledge for a while, in random order."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for person in self.people[: len(PUBLISHERS)]:
                while len(person.outgoing) < WINDOW:
                    person.publish(self.rng.choice(TOPICS), self.rng.choice((0, 1, 2, 2)))
            self.acknowledge()

    def acknowledge(self) -> bool:
        """Let all clients read and act; return whether anything was due."""
        self.absorb()
        due = [(person, task) for person in self.connected() for task in person.todo]
        for person, task in due:
            person.do(task)
        return bool(due)

    def kill(self) -> None:
        """Kill the broker; the clients read the packets it had sent before."""
        self.gateway.kill()
        for person in self.people:
            assert isinstance(person.link, SocketLink)
            person.receive(person.link.receive_to_end())
        self.crashed()
        self.gateway.start()

    def finish(self) -> None:
        """Let the clients act until nothing is due for a while."""
        rounds = 0

        def acknowledged() -> int:
            nonlocal rounds
            rounds += self.acknowledge()
            return rounds

        wait_until_stable(acknowledged, for_s=0.3, timeout_s=60)


@pytest.fixture
def world(gateway: Gateway) -> Iterator[ProcessWorld]:
    gateway.start()
    world = ProcessWorld(gateway)
    yield world
    for person in world.connected():
        assert person.link is not None
        person.link.close()


def subscribe(person: ClientModel) -> None:
    """Subscribe as listed; after the answer the session is durable."""
    for filter, qos in SUBSCRIBERS.get(person.name, {"unused": 0}).items():
        person.subscribe(filter, qos)


@pytest.mark.timeout(120)
def test_every_client_gets_its_messages_as_often_as_its_qos_allows(world: ProcessWorld) -> None:
    world.all_connect()
    for person in world.people:
        subscribe(person)
    for _ in range(KILLS):
        world.converse(world.rng.uniform(0.05, 0.4))
        world.kill()
        world.all_connect()
    world.finish()
    world.require_what_is_owed()
    assert len(world.sent) > 500, "too little was published to show anything"
