"""How far the conversation of one AMQP connection got (2.2.4)."""

from enum import Enum, auto


class State(Enum):
    """How far the conversation got."""

    GREETING = auto()  # the protocol header has to come
    STARTING = auto()  # start-ok has to come
    AUTHENTICATING = auto()  # somebody is being asked who this is
    TUNING = auto()  # tune-ok has to come
    OPENING = auto()  # connection.open has to come
    OPEN = auto()
    CLOSING = auto()  # close was sent, close-ok has to come
    CLOSED = auto()  # nothing will be said or heard any more
