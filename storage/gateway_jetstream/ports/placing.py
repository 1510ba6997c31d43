"""The creation of streams on servers that may not know each other yet."""

from collections.abc import Mapping
from typing import Any, Final

from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.ports.repeating import repeated

#: The time for which servers that have just started, or are busy, may be without enough peers or without a leader that
#: answers, in seconds.
PEERS_S: Final = 20.0

_PAUSE_S: Final = 0.5


async def create_stream(api: JetStreamApi, reactor: Any, config: Mapping[str, Any]) -> None:  # Any: as elsewhere
    """Create a stream, unless it is there; wait for the peers that have its copies, and for the leader that answers.

    :raises NatsError: if that is refused, or there are too few peers or no answer for 20 seconds.
    """
    await repeated(reactor, lambda: api.create_stream(config), limit_s=PEERS_S, pause_s=_PAUSE_S)
