"""The origin of a publish or delivery: connection, channel, user and protocol."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The publisher or consumer of a message, for tracers, logs and listings."""

    connection: str
    channel: int
    user: str
    protocol: str
