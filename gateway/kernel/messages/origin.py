"""Who published or received a message: its connection, channel, user and protocol."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who published or received a message: for tracers, logs and listings."""

    connection: str
    channel: int
    user: str
    protocol: str
