"""Chooses the copy of a stream to read: not the leader's, with which it is compared, and not one with a gap."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from gateway.cluster.queue_log import QueueId
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.layout import REPLICAS
from gateway_jetstream.ports.repeating import pause

#: A leader that was moved is not moved again for so long: many queues of a stream may meet the same gap.
_MOVED_S: Final = 5.0

#: How long a new leader is waited for, and the pause between two looks, in seconds.
_ELECTION_S: Final = 10.0
_LOOK_S: Final = 0.1


class Copies:
    """Owns what is known about copies: where gaps were met, and when leaders were moved."""

    def __init__(self, api: JetStreamApi, reactor: Any) -> None:  # Any: Twisted's interfaces are not types
        self._api = api
        self._reactor = reactor
        self._last_read: dict[QueueId, str] = {}
        self._avoided: defaultdict[QueueId, set[str]] = defaultdict(set)
        self._moved_s: dict[str, float] = {}

    async def wished(self, stream: str, queue: QueueId) -> Callable[[str], bool]:
        """Return which servers the log of a queue should be read from.

        During an election a server that leads no more may answer: it names the new leader, and all servers but itself.
        That is no reason to forget where gaps were.
        """
        state = await self._api.stream(stream)
        followers = set(state.replicas) - {state.leader}
        wished = followers - self._avoided[queue]
        if not wished and len(followers) == REPLICAS - 1:  # there was a gap everywhere: begin anew
            self._avoided.pop(queue, None)
            wished = followers
        return lambda server: not wished or server in wished

    def note_read(self, queue: QueueId, server: str) -> None:
        """Note which server a log was read from."""
        self._last_read[queue] = server

    def is_avoided(self, queue: QueueId, server: str) -> bool:
        """Return whether the log of a queue had a gap on a server."""
        return server in self._avoided[queue]

    def avoid(self, queue: QueueId, server: str) -> None:
        """Note a gap in the log of a queue on a server; when there was one on each of them, begin anew."""
        if server:
            self._avoided[queue].add(server)
            if len(self._avoided[queue]) >= REPLICAS:
                self._avoided.pop(queue)

    async def move_leader(self, stream: str, queue: QueueId) -> None:
        """Avoid the server that was read from last, and give the stream another leader.

        If the leader was moved just now, it stays, unless all others have a gap: then only its copy is left to read.
        """
        server = self._last_read.pop(queue, "")
        if server:
            self._avoided[queue].add(server)
        moved_s = self._moved_s.get(stream, -_MOVED_S)
        left_s = moved_s + _MOVED_S - self._reactor.seconds()
        if left_s > 0:
            state = await self._api.stream(stream)
            if set(state.replicas) - {state.leader} - self._avoided[queue]:
                return
            await pause(self._reactor, left_s)
            if self._moved_s[stream] != moved_s:  # for another queue, meanwhile
                return
        await self._elect_another(stream)

    async def _elect_another(self, stream: str) -> None:
        """Ask the leader of a stream to step down, and wait until another one leads."""
        self._moved_s[stream] = self._reactor.seconds()
        former = (await self._api.stream(stream)).leader
        await self._api.step_down(stream)
        ends_s = self._moved_s[stream] + _ELECTION_S
        while self._reactor.seconds() < ends_s:
            await pause(self._reactor, _LOOK_S)
            try:
                state = await self._api.stream(stream)
            except NatsError:  # there is no leader yet
                continue
            if state.leader and state.leader != former:
                return
