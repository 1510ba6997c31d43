"""The outcome of a publish."""

from enum import Enum, auto
from typing import Final


class Verdict(Enum):
    """The outcome of a publish: enqueued, without a route, or rejected by some queue (R66, R67).

    ``UNDECIDED``: the route is found in later turns; the pending work of the publish then tells whether there is one.
    """

    TAKEN = auto()
    UNROUTED = auto()
    REFUSED = auto()
    UNDECIDED = auto()


#: Looked up once, for each message: access to an enumeration's member is slow where the source is interpreted.
TAKEN: Final = Verdict.TAKEN
UNROUTED: Final = Verdict.UNROUTED
REFUSED: Final = Verdict.REFUSED
UNDECIDED: Final = Verdict.UNDECIDED
