"""The progress of a connection that a follower passes on."""

from enum import Enum


class RelayStage(Enum):
    """The progress of the connection."""

    GREETING = "greeting"
    LOGIN = "login"
    OPEN = "open"
    HELD = "held"
    RESTORING = "restoring"
    PASSING = "passing"
    OVER = "over"
