"""The states of an MQTT connection."""

from enum import Enum, auto

from gateway.net.machine import Phase


class State(Enum):
    """The states of a connection, in the order of its life."""

    AWAITING_CONNECT = auto()  # the first packet must be CONNECT (MQTT-3.1.0-1)
    AUTHENTICATING = auto()  # authentication is in progress; further packets wait
    CHALLENGED = auto()  # the next packet must be AUTH or DISCONNECT
    REFUSED = auto()  # the refusal is delayed, to slow down password guessing
    OPEN = auto()
    CLOSED = auto()

    @property
    def phase(self) -> Phase:
        """The phase of this state for the transport."""
        if self is State.OPEN:
            return Phase.OPEN
        return Phase.LEAVING if self is State.CLOSED else Phase.ENTERING
