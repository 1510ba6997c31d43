"""The messages that publishers choose: many clients repeat all but the body of the message before."""

from dataclasses import dataclass
from random import Random
from typing import Final

from gateway.simulation.publishes import PublishRoute
from gateway.simulation.topology import SharedTopology

#: How often a publisher repeats its last choice; one of these holds for a publisher.
SHARES_OF_REPETITIONS: Final = (0.0, 0.7)

_SHARE_OF_DURABLE: Final = 0.8


@dataclass(frozen=True, slots=True)
class MessageChoice:
    """Everything about a message but its body."""

    route: PublishRoute
    is_durable: bool
    priority: int | None
    content_type: str | None


class Repertoire:
    """Chooses the messages of one publisher, to the routes and with the properties of a run."""

    def __init__(self, topology: SharedTopology, random: Random) -> None:
        self._topology = topology
        self._random = random
        self._share_of_repetitions = random.choice(SHARES_OF_REPETITIONS)
        self._last: MessageChoice | None = None

    def next(self) -> MessageChoice:
        """Return the choice for the next message."""
        random, topology, last = self._random, self._topology, self._last
        if last is not None and random.random() < self._share_of_repetitions:
            return last
        self._last = choice = MessageChoice(
            random.choice(topology.routes),
            random.random() < _SHARE_OF_DURABLE,
            random.choice(topology.priorities),
            random.choice(topology.content_types),
        )
        return choice
