"""The states of an AMQP connection (2.2.4)."""

from enum import Enum, auto


class State(Enum):
    """The state of a connection."""

    GREETING = auto()  # waits for the protocol header
    STARTING = auto()  # waits for start-ok
    AUTHENTICATING = auto()  # waits for the authenticators
    TUNING = auto()  # waits for tune-ok
    OPENING = auto()  # waits for connection.open
    OPEN = auto()
    CLOSING = auto()  # close was sent, waits for close-ok
    CLOSED = auto()  # nothing more is sent or handled
