"""The states of a STOMP connection."""

from enum import Enum, auto

from gateway.net.machine import Phase


class State(Enum):
    """The states of a connection, in order."""

    GREETING = auto()  # CONNECT or STOMP must come first (1.2, "Connecting")
    AUTHENTICATING = auto()  # the authentication is under way; input waits
    OPEN = auto()
    LEAVING = auto()  # DISCONNECT was received; earlier receipts are sent first
    CLOSED = auto()

    @property
    def phase(self) -> Phase:
        """The phase, on which time limits depend."""
        if self is State.OPEN:
            return Phase.OPEN
        return Phase.ENTERING if self in (State.GREETING, State.AUTHENTICATING) else Phase.LEAVING
