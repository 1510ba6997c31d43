"""A broker whose depths of queues are recorded, on a clock that a test advances."""

from collections.abc import Mapping
from pathlib import Path

from pamqp import commands

from gateway.testing import FakeClock
from gateway_memory import MemoryStore
from tests.management.console import DEPTHS_INTERVAL_S, Console
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import publish

Depths = Mapping[str, tuple[int, int]]
"""Ready and unacknowledged messages by queue."""


class RecordedBroker:
    """Its ``peer`` is a client, ``console`` its API. Starting another one on the same ``store`` restarts it."""

    def __init__(self, directory: Path, store: MemoryStore | None = None, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.gateway = Gateway(store=store, clock=self.clock)
        self.console = Console(self.gateway, depths=directory)
        self.peer = self.gateway.connect()

    @property
    def now_ms(self) -> int:
        return self.clock.wall_ms()

    def sample(self, seconds: float = DEPTHS_INTERVAL_S) -> int:
        """Let time pass, then take a sample; return its moment."""
        self.clock.advance(seconds)
        for _ in self.console.statistics.sample():
            pass
        return self.now_ms

    def present(self) -> Depths:
        """Return what is in the queues now."""
        queues = self.gateway.vhost.queue_by_name
        return {name: (len(queue), queue.unsettled) for name, queue in queues.items()}

    def recorded(self, moment_ms: int, user: str = "guest") -> Depths | None:
        """Return what was in the queues at a moment, ``None`` if that is not known."""
        found: dict[str, tuple[int, int]] = {}
        query, answer = f"at={moment_ms}", None
        while query:
            answer = self.console.get(f"/queue-depths/%2F?{query}", user=user)
            found |= {each["name"]: (each["ready"], each["unacknowledged"]) for each in answer["queues"]}
            query = "" if answer["next"] is None else f"after={answer['next']}"
        return found if answer is not None and answer["sampled_to_ms"] is not None else None

    # By the client

    def declare(self, *names: str) -> None:
        self.peer.request(*(commands.Queue.Declare(queue=name, durable=True) for name in names))

    def publish(self, queue: str, count: int) -> None:
        self.peer.request(*(publish("", queue) for _ in range(count)))

    def get(self, queue: str) -> None:
        """Get a message, which stays unacknowledged."""
        self.peer.request(commands.Basic.Get(queue=queue))

    def purge(self, queue: str) -> None:
        self.peer.request(commands.Queue.Purge(queue=queue))

    def delete(self, queue: str) -> None:
        self.peer.request(commands.Queue.Delete(queue=queue))
