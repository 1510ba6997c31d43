"""MQTT clients that share a subscription."""

from random import Random
from typing import Final

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.mqtt.subscriber import SessionReader
from gateway.simulation.scene import Scene
from gateway.simulation.subscriptions import TopicSubscription
from gateway.simulation.topics import filter_of
from gateway.simulation.topology import SharedTopology

#: The group, its pattern, and the name of its queue (docs/protocols/mqtt.md).
_GROUP: Final = "readers"
_PATTERN: Final = "a.#"
_QUEUE: Final = f"mqtt-shared-{_GROUP}-{_PATTERN}"


class SharingReader(SessionReader):
    """A member of a group, in which each message goes to one member.

    A message that a lost member did not acknowledge goes to another one, without DUP and out of order (4.8.2).
    """

    kind = "mqtt-sharing"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.qos = 1  # with QoS 2 only the member that has begun a handshake may complete it
        topology.subscribed.add(_QUEUE)

    def new_place(self) -> MessagePlace:
        """Return the place of the group."""
        place = MessagePlace(_QUEUE, keeps_transient=False, is_ordered=False, marks_second=False, qos=1)
        return self.scene.history.places.get(_QUEUE, place)

    def filter_of(self, subscription: TopicSubscription) -> str:
        """Return the filter of the group."""
        return f"$share/{_GROUP}/{filter_of(subscription.pattern)}"

    async def subscribe(self) -> None:
        """Join the group."""
        subscription = self.scene.history.subscriptions.open(_QUEUE, _PATTERN)
        await self.request([subscription])
        self.end = subscription

    async def finish(self) -> None:
        """Leave the rest to the last reader of all queues."""
