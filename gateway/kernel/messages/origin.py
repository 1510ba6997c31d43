"""The origin of a publish or delivery: connection, channel, user and protocol."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The publisher or consumer of a message, for tracers, interceptors, logs and listings.

    ``client_id`` is that of an MQTT client, empty for others. A message that no connection publishes has an empty
    ``connection``: a will has the id of its client, a publish over HTTP the user.
    """

    connection: str
    channel: int
    user: str
    protocol: str
    client_id: str = ""
