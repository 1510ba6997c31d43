"""The spread of the leaders of cells over nodes."""

from collections.abc import Mapping, Sequence


def moves(leader_by_cell: Mapping[int, str], nodes: Sequence[str]) -> dict[int, str]:
    """Return the cells that are to be handed over, and to which nodes, so that counts differ by one at most.

    ``leader_by_cell`` has the cells that have a leader, ``nodes`` those that may lead. Few cells move, the last ones.
    """
    led = {node: [cell for cell, leader in sorted(leader_by_cell.items()) if leader == node] for node in nodes}
    found: dict[int, str] = {}
    while led:
        most = max(led, key=lambda node: (len(led[node]), node))
        least = min(led, key=lambda node: (len(led[node]), node))
        if len(led[most]) - len(led[least]) <= 1:
            break
        cell = led[most].pop()
        led[least].append(cell)
        found[cell] = least
    return found
