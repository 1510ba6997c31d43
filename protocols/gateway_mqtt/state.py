"""How far a connection got."""

from enum import Enum, auto

from gateway.net.machine import Phase


class State(Enum):
    """The states of a connection, in the order of its life."""

    GREETING = auto()  # a CONNECT has to come first (MQTT-3.1.0-1)
    JUDGING = auto()  # somebody is asked who this is; what comes meanwhile waits
    CHALLENGED = auto()  # an AUTH or DISCONNECT has to come next
    TURNED_AWAY = auto()  # the refusal is held back for a while, against guessing
    OPEN = auto()
    CLOSED = auto()

    @property
    def phase(self) -> Phase:
        """The state as the clockwork sees it."""
        if self is State.OPEN:
            return Phase.OPEN
        return Phase.LEAVING if self is State.CLOSED else Phase.ENTERING
