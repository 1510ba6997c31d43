"""A client's program, and what a run's programs have in common."""

from abc import ABC, abstractmethod
from random import Random
from typing import ClassVar, Final

from gateway.simulation.clients.client import SimulatedClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Timeout

#: The longest pause between two actions and before a client connects again, in seconds.
LONGEST_PAUSE_S: Final = 0.2


#: The time between two looks of a reader at its connection, in seconds, and how often it stops reading for a while.
_READING_S: Final = (0.05, 1.0)
_SHARE_OF_PAUSES: Final = 0.1

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


class ConnectedProgram(Program):
    """A program with one ``client``, which has one connection at a time."""

    client: SimulatedClient

    async def attempt(self) -> bool:
        """Connect, and work over the connection."""
        await self.connect()
        try:
            return await self.work()
        finally:
            self.client.drop()

    async def connect(self) -> object:
        """Connect the client."""
        return await self.client.connect()

    @abstractmethod
    async def work(self) -> bool:
        """Work over the open connection; return whether the program is complete."""

    async def read_on(self, share_of_leaves: float) -> bool:
        """Read until the end; return false to leave before it, without a word, and to come back.

        The client pauses sometimes, as a slow reader does. ``fence`` is called in between.
        """
        while not self.is_stopping:
            await self.scene.sleep(self.random.uniform(*_READING_S))
            if not self.client.is_connected:
                raise Lost("the connection ended")
            if self.random.random() < _SHARE_OF_PAUSES:
                self.client.pause(True)
                await self.pause()
                self.client.pause(False)
            await self.fence()
            if self.random.random() < share_of_leaves:
                return False
        return True

    async def fence(self) -> None:
        """Ask for an answer, after which the broker knows the acknowledgements so far."""
        return
