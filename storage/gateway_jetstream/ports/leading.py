"""Moves the leader of a stream to a server."""

from typing import Any, Final

from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.writes import pause

#: How long the move is waited for, and the pause between two looks, in seconds. It takes some 20 to 50 ms.
_MOVE_S: Final = 1.0
_LOOK_S: Final = 0.02


async def lead_from(api: JetStreamApi, reactor: Any, stream: str, server: str) -> None:  # Any: as elsewhere
    """Let a server lead a stream, if it has a copy; return once it does, or when it takes too long.

    :raises NatsError: if the request is refused, or there is no answer.
    """
    state = await api.stream(stream)
    if server == state.leader or server not in state.replicas:
        return
    await api.step_down(stream, preferred=server)
    ends_s = reactor.seconds() + _MOVE_S
    while state.leader != server and reactor.seconds() < ends_s:
        await pause(reactor, _LOOK_S)
        state = await api.stream(stream)
