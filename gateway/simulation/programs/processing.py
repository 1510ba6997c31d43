"""A client that reads one queue and writes to another, both in one transaction."""

from random import Random

from pamqp import commands

from gateway.simulation.clients.amqp import ReceivedMessage
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology


class TransactionalWorker(AmqpProgram):
    """Acknowledges each task and publishes its result in one transaction: each task is done exactly once.

    A transaction without an answer may be committed or not, but as a whole. ``_tasks_of`` has the task of each result.
    """

    kind = "amqp-worker"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._tasks, self._results = f"{self.name}.tasks", f"{self.name}.results"
        self._left = random.randint(2, 10)
        self._confirmed: list[str] = []
        self._task_of: dict[str, str] = {}
        scene.history.add_place(MessagePlace(self._tasks, keeps=False, is_ordered=False))
        scene.history.add_place(MessagePlace(self._results))

    async def work(self) -> bool:
        """Publish tasks, and do them until none is left."""
        for queue in (self._tasks, self._results):
            await self.client.declare(queue, durable=True)
        await self.client.request(commands.Tx.Select())
        while self._left and not self.is_stopping:
            self._left -= 1
            await self._publish_task()
            if self.random.random() < 0.5:
                await self._work_once()
        while not self.is_stopping and await self._work_once():
            pass
        return True

    async def _publish_task(self) -> None:
        body = self.scene.history.publish(self.name, (self._tasks,))
        self.client.publish("", self._tasks, body.encode(), delivery_mode=2)
        await self.client.request(commands.Tx.Commit())
        self.scene.history.decided(body, Fate.CONFIRMED)
        self._confirmed.append(body)

    async def _work_once(self) -> bool:
        """Do one task, or give it back; return whether there was one."""
        message = await self.client.get(self._tasks)
        if message is None:
            return False
        history, task = self.scene.history, self._received(self._tasks, message)
        result = history.publish(f"{self.name}-results", (self._results,))
        self._task_of[result] = task
        self.client.publish("", self._results, result.encode(), delivery_mode=2)
        self.client.acknowledge(message)
        if self.random.random() < 0.7:
            await self.client.request(commands.Tx.Commit())
            history.decided(result, Fate.CONFIRMED)
            history.settled(self._tasks, [task], for_ever=True)
        else:
            history.decided(result, Fate.ROLLED_BACK)
            await self.client.request(commands.Tx.Rollback())
            await self.client.request(commands.Basic.Recover(requeue=True))  # the acknowledgement is taken back
        return True

    async def finish(self) -> None:
        """Read both queues: each task is in one of them, once."""
        if not self._confirmed:
            return
        await self.client.connect()
        try:
            left = [self._received(self._tasks, message) for message in await self._all(self._tasks)]
            results = [self._received(self._results, message) for message in await self._all(self._results)]
        finally:
            self.client.drop()
        for result in results:
            self.scene.history.consumed(self._results, result)
        found = left + [self._task_of[result] for result in results]
        wrong = [task for task in self._confirmed if found.count(task) != 1]
        self.scene.findings.require(not wrong, "a task is done once, or is left", f"{wrong} in {left} and {results}")

    async def _all(self, queue: str) -> list[ReceivedMessage]:
        """Fetch everything, and leave it in the queue."""
        found = []
        while (message := await self.client.get(queue)) is not None:
            found.append(message)
        return found

    def _received(self, queue: str, message: ReceivedMessage) -> str:
        body = message.body.decode()
        self.scene.history.received(queue, self.name, body, is_redelivered=message.is_redelivered)
        return body
