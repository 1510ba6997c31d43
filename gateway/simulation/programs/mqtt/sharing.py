"""MQTT clients that share a subscription."""

from random import Random
from typing import Final

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.mqtt.subscriber import SessionReader
from gateway.simulation.scene import Scene
from gateway.simulation.subscriptions import TopicSubscription
from gateway.simulation.topics import filter_of
from gateway.simulation.topology import SharedTopology

#: The groups by the QoS of their members, their pattern, and how often a member looks whether more comes at the end.
_GROUPS: Final = {1: "readers", 2: "once"}
_PATTERN: Final = "a.#"
_MOST_LOOKS: Final = 100


class SharingReader(SessionReader):
    """A member of a group, in which each message goes to one member.

    With QoS 1, a message that a lost member did not acknowledge goes to another one, without DUP and out of order
    (4.8.2). With QoS 2, only the member that has begun the handshake completes it: the message comes once.
    """

    kind = "mqtt-sharing"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        qos = 2 if topology.qos == 2 else 1
        self._group = _GROUPS[qos]
        self._queue = f"mqtt-shared-{self._group}-{_PATTERN}"  # docs/protocols/mqtt.md
        super().__init__(scene, topology, number, random)
        self.qos = qos
        topology.subscribed.add(self._queue)

    def new_place(self) -> MessagePlace:
        """Return the place of the group."""
        qos = 2 if self.topology.qos == 2 else 1
        place = MessagePlace(self._queue, keeps_transient=False, is_ordered=False, marks_second=False, qos=qos)
        return self.scene.history.places.get(self._queue, place)

    def filter_of(self, subscription: TopicSubscription) -> str:
        """Return the filter of the group."""
        return f"$share/{self._group}/{filter_of(subscription.pattern)}"

    async def subscribe(self) -> None:
        """Join the group."""
        subscription = self.scene.history.subscriptions.open(self._queue, _PATTERN)
        await self.request([subscription])
        self.end = subscription

    async def finish(self) -> None:
        """Complete the handshakes of QoS 2; leave the rest to the last reader of all queues."""
        if self.qos != 2 or self.end is None:
            return
        self.client.answers_itself = True
        await self.connect()
        for _ in range(_MOST_LOOKS):
            count = len(self.place.consumed)
            await self.scene.sleep(1)
            await self.client.ping()
            if len(self.place.consumed) == count and not self.client.session.received:
                break
        await self.client.disconnect()
