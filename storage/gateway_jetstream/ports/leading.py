"""Moves the leader of a stream to a server."""

from typing import Any, Final

from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.repeating import pause

#: How long the move is waited for, an answer, and the pause between two looks, in seconds. It takes some 20 to 50 ms.
_MOVE_S: Final = 1.0
_ANSWER_S: Final = 0.25
_LOOK_S: Final = 0.02


async def lead_from(api: JetStreamApi, reactor: Any, stream: str, server: str) -> None:  # Any: as elsewhere
    """Let a server lead a stream, if it has a copy; return once it does, or when it takes too long.

    :raises NatsError: if the request is refused, or there is no answer.
    """
    state = await api.stream(stream, _ANSWER_S)
    if server == state.leader or server not in state.replicas:
        return
    await api.step_down(stream, server, _ANSWER_S)
    ends_s = reactor.seconds() + _MOVE_S
    while state.leader != server and reactor.seconds() < ends_s:
        await pause(reactor, _LOOK_S)
        try:
            state = await api.stream(stream, _ANSWER_S)
        except NatsError:  # there is no leader yet
            continue
