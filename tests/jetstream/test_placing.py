"""Streams are created once the servers know enough peers, which takes a while after their start."""

from collections.abc import Mapping
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from gateway_jetstream.errors import ApiError, Disconnected, NatsError, NoPeers, NoResponders, RequestTimedOut
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.placing import PEERS_S, create_stream

CONFIG = {"name": "gateway_q_2"}


class Servers(JetStreamApi):
    """Answers requests for streams with errors first, then with success."""

    def __init__(self, *errors: NatsError) -> None:
        self.errors = list(errors)
        self.asked: list[Mapping[str, Any]] = []

    async def create_stream(self, config: Mapping[str, Any]) -> Any:  # Any: the answer is not used
        self.asked.append(config)
        if self.errors:
            raise self.errors.pop(0)


def creation(servers: Servers, clock: Clock) -> "Deferred[None]":
    return Deferred.fromCoroutine(create_stream(servers, clock, CONFIG))


def test_a_stream_is_created_once_there_are_enough_peers() -> None:
    servers, clock = Servers(NoPeers("no suitable peers"), NoPeers("no suitable peers")), Clock()
    created: list[None] = []
    creation(servers, clock).addCallback(created.append)
    clock.pump([0.5])
    assert (servers.asked, created) == ([CONFIG] * 2, [])
    clock.pump([0.5])
    assert (servers.asked, created) == ([CONFIG] * 3, [None])


@pytest.mark.parametrize("kind", [NoResponders, RequestTimedOut, Disconnected])
def test_a_stream_is_created_once_the_leader_of_the_servers_answers(kind: type[NatsError]) -> None:
    servers, clock = Servers(kind("no answer"), kind("no answer")), Clock()
    created: list[None] = []
    creation(servers, clock).addCallback(created.append)
    clock.pump([0.5, 0.5])
    assert (servers.asked, created) == ([CONFIG] * 3, [None])


def test_too_few_peers_are_an_error_in_the_end() -> None:
    servers, clock = Servers(*(NoPeers("no suitable peers") for _ in range(100))), Clock()
    created = creation(servers, clock)
    clock.pump([0.5] * int(PEERS_S / 0.5 + 1))
    with pytest.raises(NoPeers):
        raise created.result.value  # type: ignore[attr-defined]
    assert not clock.getDelayedCalls()
    created.addErrback(lambda failure: None)


def test_other_refusals_are_final() -> None:
    servers, clock = Servers(ApiError("insufficient storage resources", code=10047)), Clock()
    created = creation(servers, clock)
    assert isinstance(created.result.value, ApiError)  # type: ignore[attr-defined]
    assert servers.asked == [CONFIG]
    created.addErrback(lambda failure: None)
