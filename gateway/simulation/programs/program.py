"""A client's program, and what a run's programs have in common."""

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar, Final

from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Timeout

#: The longest pause between two actions and before a client connects again, in seconds.
LONGEST_PAUSE_S: Final = 0.2


#: AMQP's code for connections that a stop of the node closes.
CONNECTION_FORCED: Final = 320


class Program(ABC):
    """One client of a run. ``random`` decides its actions; it depends on the seed and the number of the program.

    A program ends when its work is done, or when ``is_stopping``. ``is_reader``: it has work as long as others publish.
    """

    kind: ClassVar[str]
    is_reader: ClassVar[bool] = False

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        self.scene = scene
        self.topology = topology
        self.name = f"{self.kind}-{number}"
        self.random = random
        self.is_stopping = False

    @abstractmethod
    async def attempt(self) -> bool:
        """Connect and work; return whether the program is complete. :raises Lost: to be called again."""

    async def run(self) -> None:
        """Work until the program is complete, with a new connection after each loss of one."""
        while not self.is_stopping:
            try:
                if await self.attempt():
                    return
            except Lost:
                await self.pause()
            except Timeout as error:
                self.scene.findings.add("each request is answered in time", str(error))
                return
            except RefusedRequest as error:
                if error.code != CONNECTION_FORCED:
                    self.refused(error)
                await self.pause()

    async def finish(self) -> None:
        """Read what is left for this client, once no other works. :raises Lost: to be called again."""
        return

    async def run_finish(self) -> None:
        """Finish, with a new connection after each loss of one."""
        while True:
            try:
                await self.finish()
            except Lost:
                await self.pause()
            except (Timeout, RefusedRequest) as error:
                self.scene.findings.add("each request is answered in time", f"{self.name} at the end: {error}")
                return
            else:
                return

    def refused(self, error: RefusedRequest) -> None:
        """Report a refusal that the program did not ask for."""
        self.scene.findings.add("a valid request is not refused", f"{self.name}: {error}")
        self.is_stopping = True

    async def pause(self) -> None:
        """Wait for a moment."""
        await self.scene.sleep(self.random.uniform(0, LONGEST_PAUSE_S))
