"""The creation of streams on servers that may not know each other yet."""

from collections.abc import Mapping
from typing import Any, Final

from gateway_jetstream.errors import Disconnected, NoPeers, NoResponders, RequestTimedOut
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.writes import pause

#: The time for which servers that have just started, or are busy, may be without enough peers or without a leader that
#: answers, in seconds.
PEERS_S: Final = 20.0

#: What passes by itself. Another attempt does no harm if the former one was carried out.
_PASSING: Final = (NoPeers, NoResponders, RequestTimedOut, Disconnected)

_PAUSE_S: Final = 0.5


async def create_stream(api: JetStreamApi, reactor: Any, config: Mapping[str, Any]) -> None:  # Any: as elsewhere
    """Create a stream, unless it is there; wait for the peers that have its copies, and for the leader that answers.

    :raises NatsError: if that is refused, or there are too few peers or no answer for 20 seconds.
    """
    ends_s = reactor.seconds() + PEERS_S
    while True:
        try:
            await api.create_stream(config)
        except _PASSING:
            if reactor.seconds() >= ends_s:
                raise
            await pause(reactor, _PAUSE_S)
        else:
            return
