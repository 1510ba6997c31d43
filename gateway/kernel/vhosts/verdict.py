"""The outcome of a publish."""

from enum import Enum, auto
from typing import Final


class Verdict(Enum):
    """The outcome of a publish: enqueued, without a route, or rejected by some queue (R66, R67)."""

    TAKEN = auto()
    UNROUTED = auto()
    REFUSED = auto()


#: Looked up once, for each message: access to an enumeration's member is slow where the source is interpreted.
TAKEN: Final = Verdict.TAKEN
UNROUTED: Final = Verdict.UNROUTED
REFUSED: Final = Verdict.REFUSED
