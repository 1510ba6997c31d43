"""A table that maps hashes to destinations by weight, and changes little when a destination comes or goes.

Each of the slots belongs to the destination with the lowest score in it (weighted rendezvous hashing, also called an
exponential race): a draw from an exponential distribution whose rate is the weight. The draws of one destination do
not depend on the others, so a new destination takes over only the slots that it wins, and a removed one leaves only
its own. The order in which destinations came does not matter. A ring of points was rejected because its memory and
its time to build grow with the weights.
"""

from array import array
from collections.abc import Hashable
from hashlib import blake2b
from math import inf, log
from typing import Final, Generic, TypeVar

#: The number of slots, a power of two. The share of a destination with s slots varies by about 1/sqrt(s): 8 % with 100
#: destinations of equal weight.
SLOTS: Final = 2**14

#: The masks and multipliers of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_MASK: Final = 2**64 - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB

D = TypeVar("D", bound=Hashable)


class _Contender(Generic[D]):
    """A destination with its weight, 0 after it was removed."""

    __slots__ = ("destination", "seed", "weight")

    def __init__(self, destination: D, seed: int, weight: int) -> None:
        self.destination = destination
        self.seed = seed
        self.weight = weight

    def score(self, slot: int) -> float:
        """Return the score in a slot; the lowest one wins."""
        mixed = (self.seed + slot * _STEP) & _MASK
        mixed = (mixed ^ mixed >> 30) * _FIRST & _MASK
        mixed = (mixed ^ mixed >> 27) * _SECOND & _MASK
        return -log((mixed ^ mixed >> 31 | 1) / 2**64) / self.weight


class WeightedSlots(Generic[D]):
    """Maps a slot number, a hash modulo ``SLOTS``, to a destination.

    The winner of a slot is computed when the slot is first used, and compared with newcomers when it is used again, so
    that no change of a table with many destinations takes long. Memory does not depend on the weights.
    """

    def __init__(self) -> None:
        self._contender_by_destination: dict[D, _Contender[D]] = {}
        self._contenders: list[_Contender[D]] = []  # in order of arrival, with those that were removed
        self._reset()

    def set_weight(self, destination: D, name: str, weight: int) -> None:
        """Add or remove a destination, or change its weight; 0 removes it.

        ``name`` identifies it over restarts.
        """
        former = self._contender_by_destination.pop(destination, None)
        if former is not None:
            former.weight = 0
        if weight:
            seed = int.from_bytes(blake2b(name.encode(), digest_size=8).digest())
            contender = _Contender(destination, seed, weight)
            self._contender_by_destination[destination] = contender
            self._contenders.append(contender)
        if len(self._contenders) > 2 * len(self._contender_by_destination):
            self._contenders = list(self._contender_by_destination.values())
            self._reset()

    def at(self, slot: int) -> D | None:
        """Return the destination of a slot; ``None`` if there are no destinations."""
        winner, count = self._winners[slot], len(self._contenders)
        if winner is None or self._compared[slot] != count or not winner.weight:
            winner = self._decide(slot, winner)
        return None if winner is None else winner.destination

    def _decide(self, slot: int, winner: _Contender[D] | None) -> _Contender[D] | None:
        """Return the winner of a slot, after comparing the former one, if it is still there, with newcomers."""
        if winner is None or not winner.weight:
            winner, lowest, first = None, inf, 0
        else:
            lowest, first = self._scores[slot], self._compared[slot]
        for contender in self._contenders[first:]:
            if contender.weight and (score := contender.score(slot)) < lowest:
                winner, lowest = contender, score
        self._winners[slot] = winner
        self._scores[slot] = lowest
        self._compared[slot] = len(self._contenders)
        return winner

    def _reset(self) -> None:
        """Forget the winners."""
        self._winners: list[_Contender[D] | None] = [None] * SLOTS
        self._scores = array("d", [inf]) * SLOTS
        self._compared = array("L", [0]) * SLOTS  # the number of contenders that were compared
