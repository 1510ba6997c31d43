"""The base of the programs of STOMP clients."""

from random import Random
from typing import Final

from gateway.simulation.clients.stomp.client import StompClient
from gateway.simulation.programs.program import ConnectedProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import TOPICS, SharedTopology

#: The versions of clients; one that is listed twice is as likely again.
VERSIONS: Final = ("1.0", "1.1", "1.2", "1.2")


class StompProgram(ConnectedProgram):
    """A program of a STOMP client."""

    client: StompClient

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client = StompClient(scene, self.name, random.choice(VERSIONS))

    def queue_destination(self, queue: str) -> str:
        """Return a destination of a queue of the topology."""
        plan = next(plan for plan in self.topology.queues if plan.name == queue)
        if plan.is_durable and not plan.arguments and self.random.random() < 0.5:
            return f"/queue/{queue}"  # declares the queue: it must be durable and have no arguments
        return f"/amq/queue/{queue}"

    def topic_destination(self, key: str) -> str:
        """Return a destination of a key of the exchange of topics."""
        return self.random.choice((f"/topic/{key}", f"/exchange/{TOPICS}/{key}"))
