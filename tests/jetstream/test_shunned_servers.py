"""A server whose copy is of no use is never read from: another one is waited for."""

from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.task import Clock

from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.push_consumer import PushConsumer


class Client:
    """A client of servers that do nothing."""

    is_open = True

    def __init__(self) -> None:
        self.on_opened: list[Callable[[str], None]] = []

    def new_inbox(self) -> str:
        return "inbox"

    def subscribe(self, subject: str, deliver: Callable[[Any], None]) -> "Client":
        return self

    def stop(self) -> None:
        """Nothing is delivered."""

    def publish(self, subject: str, payload: bytes, reply: str = "") -> None:
        """Nothing is removed."""


class Servers(JetStreamApi):
    """Makes each consumer on the next server, and then all others on the last one."""

    def __init__(self, *servers: str) -> None:
        super().__init__(Client())  # type: ignore[arg-type]
        self.servers = list(servers)
        self.made = 0

    async def call(
        self, subject: str, body: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> dict[str, Any]:
        self.made += 1
        server = self.servers.pop(0) if len(self.servers) > 1 else self.servers[0]
        return {"cluster": {"leader": server}, "num_pending": 1}


def consumer(servers: Servers, clock: Clock, *, leader: str = "", damaged: str = "") -> PushConsumer:
    return PushConsumer(
        servers,
        clock,
        "log",
        ["log.1"],
        lambda message: None,
        start={},
        accepts=lambda server: server not in (leader, damaged),
        shuns=lambda server: server == damaged,
    )


def test_a_server_that_is_not_wished_for_is_read_from_if_it_alone_is_drawn() -> None:
    servers, clock = Servers("leader"), Clock()
    assert consumer(servers, clock, leader="leader").source == "leader"
    assert servers.made == 21


def test_a_shunned_server_is_not_read_from_while_the_others_seem_to_be_offline() -> None:
    servers, clock = Servers(*["damaged"] * 30, "leader"), Clock()
    reading = consumer(servers, clock, leader="leader", damaged="damaged")
    assert (reading.source, servers.made) == ("", 21)
    clock.pump([0.25] * 9)
    assert (reading.source, servers.made) == ("", 30)
    clock.pump([0.25])
    assert reading.source == "leader"


def test_a_shunned_server_is_not_read_from_after_any_time() -> None:
    servers, clock = Servers("damaged"), Clock()
    reading = consumer(servers, clock, damaged="damaged")
    clock.pump([0.25] * 400)
    assert (reading.source, servers.made) == ("", 421)
    servers.servers = ["leader"]
    clock.pump([0.25])
    assert reading.source == "leader"


def test_a_consumer_that_waits_for_another_server_can_be_stopped() -> None:
    servers, clock = Servers("damaged"), Clock()
    consumer(servers, clock, damaged="damaged").stop()
    assert clock.getDelayedCalls() == []
    clock.pump([0.25] * 3)
    assert servers.made == 21
