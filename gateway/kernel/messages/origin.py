"""The origin of a publish or delivery: connection, channel, user and protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: Names of protocols in traces, by those of origins; others are the same.
TRACE_NAMES: Final[Mapping[str, str]] = {
    "MQTT 3-1": "mqtt310",
    "MQTT 3-1-1": "mqtt311",
    "MQTT 5-0": "mqtt50",
    "STOMP 1.0": "stomp10",
    "STOMP 1.1": "stomp11",
    "STOMP 1.2": "stomp12",
    "HTTP": "http",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """The publisher or consumer of a message, for tracers, interceptors, logs and listings.

    ``client_id`` is that of an MQTT client, empty for others. A message that no connection publishes has an empty
    ``connection``: a will has the id of its client, a publish over HTTP the user. ``grant`` is that of the principal
    that logged in: an interceptor recognizes by it the clients that its own plugin accepted.
    """

    connection: str
    channel: int
    user: str
    protocol: str
    client_id: str = ""
    grant: Any = field(default=None, compare=False, repr=False)  # an object of the authenticator's

    @property
    def protocol_in_traces(self) -> str:
        """The protocol and its version as traces name them: ``amqp091``, ``mqtt50``, ``stomp12``, ``http``."""
        return TRACE_NAMES.get(self.protocol, self.protocol)
