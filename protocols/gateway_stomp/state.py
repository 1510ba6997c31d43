"""How far a connection got."""

from enum import Enum, auto

from gateway.net.machine import Phase


class State(Enum):
    """The states of a connection, in the order of its life."""

    GREETING = auto()  # CONNECT or STOMP has to come first (1.2, "Connecting")
    JUDGING = auto()  # somebody is asked who this is; what comes meanwhile waits
    OPEN = auto()
    LEAVING = auto()  # DISCONNECT came; the receipts of what was sent before go out first
    CLOSED = auto()

    @property
    def phase(self) -> Phase:
        """The state as the clockwork sees it."""
        if self is State.OPEN:
            return Phase.OPEN
        return Phase.ENTERING if self in (State.GREETING, State.JUDGING) else Phase.LEAVING
