"""The rates of the arrows of a drawn topology.

The broker counts messages by the exchange to which they were published and the queue that they reached, whichever way
they took; a count for each binding would be work for each message. Where only one way leads from an exchange to a
queue, each arrow on it has that rate. Where several do, the rate is only known to be at most that.
"""

from collections.abc import Collection, Generator, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

_Node = TypeVar("_Node", bound=Hashable)

#: Rates that differ by less are the same, in messages a second.
_EQUAL: Final = 0.05


@dataclass(slots=True)
class ArrowRate:
    """The bounds of the rate of an arrow, in messages a second: ``least`` and ``most`` by the exchange of entry."""

    least: dict[object, float] = field(default_factory=dict)
    most: dict[object, float] = field(default_factory=dict)

    @property
    def at_most(self) -> float:
        """The rate that is not exceeded."""
        return sum(self.most.values())

    @property
    def exact(self) -> float | None:
        """The rate, if it is known."""
        return self.at_most if self.at_most - sum(self.least.values()) < _EQUAL else None


ArrowRates: TypeAlias = "dict[tuple[_Node, _Node], ArrowRate]"


def arrow_rates(
    arrows: "Collection[tuple[_Node, _Node]]",
    entries: "Mapping[_Node, float]",
    flows: "Mapping[tuple[_Node, _Node], float]",
) -> "Generator[None, None, ArrowRates[_Node]]":
    """Return the rates of all arrows, in steps of one flow.

    ``entries`` are the rates of messages published to each exchange, ``flows`` those of messages by exchange and queue.
    Messages that reach no drawn queue are not counted.
    """
    onwards, backwards = _neighbours(arrows), _neighbours([(target, source) for source, target in arrows])
    rates: dict[tuple[_Node, _Node], ArrowRate] = {arrow: ArrowRate() for arrow in arrows}
    ahead: dict[_Node, set[_Node]] = {}
    behind: dict[_Node, set[_Node]] = {}
    for (entry, queue), rate in flows.items():
        if entry not in ahead:
            ahead[entry] = _reached(entry, onwards)
        if queue not in behind:
            behind[queue] = _reached(queue, backwards)
        between = ahead[entry] & behind[queue]
        ways = [(node, each) for node in between for each in onwards.get(node, ()) if each in between]
        is_only_way = len({node for node, _ in ways}) == len(ways)
        for arrow in ways:
            known = rates[arrow]
            most = known.most.get(entry, 0.0) + rate
            known.most[entry] = most if arrow[1] == queue else min(most, max(rate, entries.get(entry, most)))
            if is_only_way:
                known.least[entry] = max(known.least.get(entry, 0.0), rate)
        yield
    return rates


def _neighbours(arrows: "Collection[tuple[_Node, _Node]]") -> "dict[_Node, list[_Node]]":
    found: dict[_Node, list[_Node]] = {}
    for source, target in arrows:
        found.setdefault(source, []).append(target)
    return found


def _reached(start: "_Node", neighbours: "Mapping[_Node, list[_Node]]") -> "set[_Node]":
    """Return the nodes that arrows lead to from a node, and the node itself."""
    found, to_visit = {start}, [start]
    while to_visit:
        for node in neighbours.get(to_visit.pop(), ()):
            if node not in found:
                found.add(node)
                to_visit.append(node)
    return found
