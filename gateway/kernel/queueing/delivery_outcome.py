"""The outcomes of a delivery."""

from enum import Enum, auto


class DeliveryOutcome(Enum):
    """The way a delivery was settled."""

    ACCEPTED = auto()
    REQUEUED = auto()
    REJECTED = auto()
