"""One broker under load, killed and started again, until the accounts of its queues tell what it lost or doubled."""

import random
import time
from collections import Counter
from collections.abc import Iterable

from tests.broker.conftest import Connect
from tests.durability.expected import Account
from tests.durability.load import Client, Publisher
from tests.running import Gateway


class Trial:
    """Owns the accounts of the queues, and what each publisher sends next, through all kills.

    A subclass says what there is (``declare``), who is busy with it (``clients``) and what has to be left (``audit``).
    """

    def __init__(self, gateway: Gateway, connect: Connect, queues: Iterable[str]) -> None:
        self.gateway = gateway
        self.connect = connect
        self.accounts = {queue: Account() for queue in queues}
        self.next_number: Counter[str] = Counter()

    def declare(self) -> None:
        """Declare the queues and what leads to them."""
        raise NotImplementedError

    def clients(self) -> list[Client]:
        """Return new clients, who go on where those before them were cut off."""
        raise NotImplementedError

    def audit(self) -> None:
        """Compare what a broker that was started again holds with the accounts."""
        raise NotImplementedError

    def publisher(self, name: str, exchange: str, key: str, queues: Iterable[str], window: int) -> Publisher:
        """Return a publisher whose messages go to these queues."""
        accounts = [self.accounts[queue] for queue in queues]
        return Publisher(self.gateway.broker, name, self.next_number[name], exchange, key, accounts, window)

    def load_for(self, seconds: float) -> None:
        """Keep all clients busy until the broker is killed, this long after each of them is."""
        clients = self.clients()
        for client in clients:
            client.start()
        for client in clients:
            assert client.is_busy.wait(10), "a client gets no answer"
        time.sleep(seconds)
        self.gateway.kill()
        for client in clients:
            client.ended()
            if isinstance(client, Publisher):
                self.next_number[client.name] = client.next_number

    def survive(self, kills: int, *, within_s: float) -> None:
        """Go through so many kills, each at a random moment of the load within so many seconds."""
        moments = random.Random()
        self.gateway.start()
        self.declare()
        for _ in range(kills):
            self.load_for(moments.uniform(0.0, within_s))
            self.gateway.start()
            self.audit()
