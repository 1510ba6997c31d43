"""STOMP clients that read: queues, durable subscriptions, and topics for the time of a connection."""

from abc import abstractmethod
from random import Random
from typing import ClassVar

from gateway.simulation.clients.errors import RefusedRequest
from gateway.simulation.clients.stomp.frames import StompFrame
from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.program import LONGEST_PAUSE_S
from gateway.simulation.programs.stomp.program import StompProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Promise

#: Patterns of topics that clients subscribe to.
_PATTERNS = ("a.a", "b.b", "a.*", "*.b", "a.#")

#: The share of acknowledgements that are part of a transaction.
_SHARE_OF_TRANSACTIONS = 0.15


class StompReader(StompProgram):
    """Reads one place with one subscription.

    ``_settled`` has the messages that it acknowledged, in order; a receipt of one says that all so far are settled.
    """

    is_reader = True
    modes: ClassVar[tuple[str, ...]] = ("auto", "client", "client-individual")

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self.client.on_message = self._received
        self._mode = random.choice([mode for mode in self.modes if self.client.version != "1.0" or "-" not in mode])
        self._prefetch = random.choice((0, 1, 3))
        self._thinks = random.random() < 0.5
        self._rounds = self._transactions = 0
        self._settled: list[str] = []
        self._waiting: list[tuple[int, StompFrame]] = []
        self.place = self.open_place()
        if self._mode == "auto":  # what is under way when the connection ends is lost, as agreed
            self.place.keeps = False

    @abstractmethod
    def open_place(self) -> MessagePlace:
        """Return the place that the client reads."""

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """Return the destination and other headers of the subscription."""

    async def work(self) -> bool:
        """Read until the end, or leave to come back."""
        await self.subscribe()
        return await self.read_on(0.2)

    async def attempt(self) -> bool:
        """Connect, and work over the connection; what the last one left is no longer to be acknowledged."""
        self._rounds += 1
        self._settled, self._waiting = [], []
        return await super().attempt()

    async def subscribe(self) -> None:
        """Subscribe, and wait for the receipt."""
        headers = {"id": self.name, "ack": self._mode, **self.headers()}
        if self._prefetch:
            headers["prefetch-count"] = str(self._prefetch)
        await self.client.ask("SUBSCRIBE", headers)

    def _received(self, frame: StompFrame) -> None:
        body = frame.body.decode()
        is_settled = self._mode == "auto"
        self.scene.history.received(
            self.place.name,
            f"{self.name}/{self._rounds}",
            body,
            is_redelivered=frame.headers.get("redelivered") == "true",
            removes=is_settled,
        )
        self.scene.findings.require(
            frame.headers.get("subscription", self.name) == self.name, "a message names its subscription", self.name
        )
        if not is_settled:
            self._waiting.append((self._rounds, frame))
            if self._thinks:
                self.scene.world.schedule(self.random.uniform(0, LONGEST_PAUSE_S), self._settle_oldest)
            else:
                self._settle_oldest()

    def _settle_oldest(self) -> None:
        """Acknowledge the oldest message; in mode ``client`` perhaps more of them with one frame."""
        if not self._waiting or not self.client.is_connected:
            return
        count = self.random.randint(1, len(self._waiting)) if self._mode == "client" else 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        headers = self._reference(taken[-1][1])
        if self.client.version != "1.0" and self.random.random() < 0.1:
            self.client.send("NACK", headers)
            return
        if self.random.random() < _SHARE_OF_TRANSACTIONS:
            self._settle_in_transaction(taken, headers)
            return
        self._settled_now(taken)
        if self.random.random() < 0.4:
            self._ask("ACK", headers)
        else:
            self.client.send("ACK", headers)

    def _settle_in_transaction(self, taken: list[tuple[int, StompFrame]], headers: dict[str, str]) -> None:
        """Acknowledge in a transaction, and commit it, or abort it and acknowledge again later."""
        self._transactions += 1
        named = {"transaction": f"{self.name}-{self._transactions}"}
        self.client.send("BEGIN", named)
        self.client.send("ACK", {**headers, **named})
        if self.random.random() < 0.4:
            self.client.send("ABORT", named)
            self._waiting[:0] = taken
            self.scene.world.schedule(self.random.uniform(0, LONGEST_PAUSE_S), self._settle_oldest)
        else:
            self._settled_now(taken)
            self._ask("COMMIT", named)

    def _settled_now(self, taken: list[tuple[int, StompFrame]]) -> None:
        """Record acknowledgements that are sent; whether the broker knows is open."""
        for _, frame in taken:
            self._settled.append(frame.body.decode())
            self.scene.history.consumed(self.place.name, frame.body.decode())

    def _ask(self, command: str, headers: dict[str, str]) -> None:
        """Send a frame whose receipt says that all acknowledgements so far are on disk."""
        settled = list(self._settled)
        receipt = self.client.ask(command, headers)
        receipt.when_done(lambda: self._receipted(receipt, settled))

    def _receipted(self, receipt: Promise[None], bodies: list[str]) -> None:
        """Record a receipt, unless the connection ended before it came."""
        if receipt.is_fulfilled:
            self.scene.history.settled(self.place.name, bodies, for_ever=True)

    def _reference(self, frame: StompFrame) -> dict[str, str]:
        """Return the headers by which ACK and NACK name a message in the client's version."""
        match self.client.version:
            case "1.2":
                return {"id": frame.headers["ack"]}
            case "1.1":
                return {"message-id": frame.headers["message-id"], "subscription": frame.headers["subscription"]}
            case _:
                return {"message-id": frame.headers["message-id"]}


class StompConsumer(StompReader):
    """Reads a queue of the topology, which it shares with others."""

    kind = "stomp-consumer"

    def open_place(self) -> MessagePlace:
        """Return the queue."""
        self._queue = self.random.choice(self.topology.queues).name
        return self.scene.history.places[self._queue]

    def headers(self) -> dict[str, str]:
        """Return the destination of the queue."""
        return {"destination": self.queue_destination(self._queue)}

    def refused(self, error: RefusedRequest) -> None:
        """Come back later if the queue is not there: a transient one is declared again after a restart."""
        if not error.text.startswith("not_found") or self.place.survives:
            super().refused(error)


class StompDurable(StompReader):
    """Reads topics in a durable subscription, whose queue collects messages while the client is away."""

    kind = "stomp-durable"
    modes = ("client", "client-individual")

    def open_place(self) -> MessagePlace:
        """Return the queue of the subscription."""
        self._pattern = self.random.choice(_PATTERNS)
        self._destination = self.topic_destination(self._pattern)
        self.topology.subscribed.add(self.name)
        return self.scene.history.add_place(MessagePlace(self.name))

    def headers(self) -> dict[str, str]:
        """Return the destination, and what makes the subscription durable."""
        return {"destination": self._destination, "durable": "true", "x-queue-name": self.name}

    async def subscribe(self) -> None:
        """Subscribe, after which what is published is promised."""
        subscription = self.scene.history.subscriptions.open(self.name, self._pattern)
        await super().subscribe()
        subscription.is_promised = True


class StompPassing(StompReader):
    """Reads topics for the time of a connection."""

    kind = "stomp-passing"

    def open_place(self) -> MessagePlace:
        """Return the queue of the subscription, which ends with it."""
        return self.scene.history.add_place(MessagePlace(self.name, keeps=False, survives=False))

    def headers(self) -> dict[str, str]:
        """Return the destination."""
        return {"destination": self.topic_destination(self._pattern)}

    async def work(self) -> bool:
        """Subscribe, read for a while, and unsubscribe or leave."""
        topics = self.scene.history.subscriptions
        self._pattern = self.random.choice(_PATTERNS)
        subscription = topics.open(self.name, self._pattern)
        try:
            await self.subscribe()
            await self.scene.sleep(self.random.uniform(0.05, 2))
            topics.close(subscription)
            await self.client.ask("UNSUBSCRIBE", {"id": self.name})
        finally:
            topics.close(subscription)
            topics.remove(subscription)
        return self.is_stopping
