"""A broker under load that is killed and restarted repeatedly, with checks for lost and duplicated messages."""

import random
import time
from collections import Counter
from collections.abc import Iterable

from tests.broker.conftest import Connect
from tests.durability.expected import ExpectedMessages
from tests.durability.load import Client, Publisher
from tests.running import Gateway


class CrashTrial:
    """Owns the expected content of the queues, and the next number of each publisher, through all kills.

    Subclasses declare entities (``declare``), provide the load (``clients``) and check the result (``audit``).
    """

    def __init__(self, gateway: Gateway, connect: Connect, queues: Iterable[str]) -> None:
        self.gateway = gateway
        self.connect = connect
        self.expectations = {queue: ExpectedMessages() for queue in queues}
        self.next_number: Counter[str] = Counter()

    def declare(self) -> None:
        """Declare the queues and their bindings."""
        raise NotImplementedError

    def clients(self) -> list[Client]:
        """Return new clients, which continue where the earlier ones were interrupted."""
        raise NotImplementedError

    def audit(self) -> None:
        """Compare the content of the restarted broker with the expectations."""
        raise NotImplementedError

    def publisher(self, name: str, exchange: str, key: str, queues: Iterable[str], window: int) -> Publisher:
        """Return a publisher whose messages go to these queues."""
        expectations = [self.expectations[queue] for queue in queues]
        return Publisher(self.gateway.broker, name, self.next_number[name], exchange, key, expectations, window)

    def load(self) -> list[Client]:
        """Start all clients, and return them once each is busy."""
        clients = self.clients()
        for client in clients:
            client.start()
        for client in clients:
            assert client.is_busy.wait(10), "a client gets no answer"
        return clients

    def ended(self, clients: Iterable[Client]) -> None:
        """Wait for the end of the clients, after a kill or a stop."""
        for client in clients:
            client.ended()
            if isinstance(client, Publisher):
                self.next_number[client.name] = client.next_number

    def load_for(self, seconds: float) -> None:
        """Run all clients, and kill the broker this long after each of them is busy."""
        clients = self.load()
        time.sleep(seconds)  # the time of the kill is the parameter of the trial
        self.gateway.kill()
        self.ended(clients)

    def survive(self, kills: int, *, within_s: float) -> None:
        """Kill the broker this many times, each at a random time within ``within_s`` seconds of load."""
        rng = random.Random()
        self.gateway.start()
        self.declare()
        for _ in range(kills):
            self.load_for(rng.uniform(0.0, within_s))
            self.gateway.start()
            self.audit()
