"""STOMP clients that publish: with receipts, and in transactions."""

from random import Random

from gateway.simulation.programs.repertoire import Repertoire
from gateway.simulation.programs.stomp.program import StompProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import TOPICS, SharedTopology
from gateway.simulation.world.tasks import Promise


class StompSender(StompProgram):
    """Sends messages, to queues and topics."""

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._repertoire = Repertoire(topology, random)

    def transmit(self, headers: dict[str, str], group: int = 0) -> tuple[str, Promise[None] | None]:
        """Send a message somewhere; return its body, and its receipt unless it is part of a transaction."""
        chosen = self._repertoire.next()
        route, is_durable = chosen.route, bool(group) or chosen.is_durable
        body = self.scene.history.publish(
            self.name,
            route.places,
            is_durable=is_durable,
            group=group,
            topic_key=route.topic_key,
            content_type=chosen.content_type,
        )
        if not route.exchange:
            destination = self.queue_destination(route.key)
        elif route.exchange == TOPICS:
            destination = self.topic_destination(route.key)
        else:
            destination = f"/exchange/{route.exchange}/{route.key}"
        headers = {**headers, "destination": destination}
        if is_durable:
            headers["persistent"] = "true"
        if chosen.content_type is not None:
            headers["content-type"] = chosen.content_type
        if group:
            self.client.send("SEND", headers, body.encode())
            return body, None
        return body, self.client.ask("SEND", headers, body.encode())


class StompPublisher(StompSender):
    """Sends messages with receipts, which say that they are stored."""

    kind = "stomp-publisher"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._left = random.randint(1, 20)
        self._batch = random.choice((1, 3, 10))

    async def work(self) -> bool:
        """Send the batches that are left."""
        while self._left and not self.is_stopping:
            size = min(self._batch, self._left)
            self._left -= size
            note = "plain" if self.client.version == "1.0" else "a:b\\c\n"  # 1.0 has no escapes
            for body, receipt in [self.transmit({"note": note}) for _ in range(size)]:
                assert receipt is not None
                await receipt
                self.scene.history.decided(body, Fate.CONFIRMED)
            if self.random.random() < 0.3:
                await self.pause()
        await self.client.ask("DISCONNECT", {})
        return True


class StompTransactions(StompSender):
    """Sends messages in transactions, some of which it aborts."""

    kind = "stomp-transactions"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._left = random.randint(1, 6)
        self._group = number * 1000

    async def work(self) -> bool:
        """Commit or abort the transactions that are left."""
        while self._left and not self.is_stopping:
            self._left -= 1
            self._group += 1
            named = {"transaction": f"transaction-{self._group}"}
            self.client.send("BEGIN", named)
            bodies = [self.transmit(named, self._group)[0] for _ in range(self.random.randint(1, 5))]
            if self.random.random() < 0.7:
                await self.client.ask("COMMIT", named)
                fate = Fate.CONFIRMED
            else:
                fate = Fate.ROLLED_BACK
                self._decide(bodies, fate)  # nothing but a COMMIT may bring them to a queue
                await self.client.ask("ABORT", named)
            self._decide(bodies, fate)
        return True

    def _decide(self, bodies: list[str], fate: Fate) -> None:
        for body in bodies:
            self.scene.history.decided(body, fate)
