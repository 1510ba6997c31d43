"""Definitions in a cluster with several cells: each cell has those of its virtual hosts, the first one all others."""

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from gateway.access import Principal
from gateway.definitions import scan
from gateway.kernel.errors import ConfigurationError
from gateway.management.cells.cells import Cells
from gateway.management.cells.joining import documents
from gateway.management.http.routes import Fields, Pieces, Streamed
from gateway.management.views.json import encode
from gateway.management.web.request import Request

#: The categories whose entries name their virtual host.
_IN_VHOSTS: Final = ("parameters", "policies", "queues", "exchanges", "bindings")

#: The categories whose entries name a virtual host and belong to the first cell.
_OF_USERS: Final = ("permissions", "topic_permissions")

_WITH_VHOST: Final = ("vhosts", *_OF_USERS, *_IN_VHOSTS)

#: Entries that are handled in one step.
_STEP: Final = 50


def joined_export(
    own: Iterator[Any], cells: Cells, request: Request, principal: Principal
) -> "Generator[Any, None, Streamed]":
    """Return the definitions of all cells."""
    pieces = []
    for piece in own:
        if isinstance(piece, bytes):
            pieces.append(piece)
        yield None
    document: Any = yield from scan(b"".join(pieces).decode())  # Any: JSON
    for other in (yield from documents(cells, request, principal, request.target)):
        for category in ("vhosts", *_IN_VHOSTS):
            document[category] += other.get(category, [])
    return Streamed(_written(document))


def _written(document: Fields) -> Pieces:
    """Yield a document in pieces."""
    yield encode({name: value for name, value in document.items() if not isinstance(value, list)})[:-1]
    for category, entries in document.items():
        if isinstance(entries, list):
            yield b"," + encode(category) + b":["
            comma, source = b"", iter(entries)
            while batch := list(islice(source, _STEP)):
                yield comma + b",".join(map(encode, batch))
                comma = b","
            yield b"]"
    yield b"}"


def planned_cells(cells: Cells, document: Fields) -> dict[str, int]:
    """Choose cells for the virtual hosts of definitions that do not exist yet, without any effect.

    Each goes to the cell that its entry names, else to the one with the fewest.

    :raises ConfigurationError: if one is being deleted, names a cell that there is not, or exists in another one.
    """
    wanted: dict[str, int | None] = {}
    for entry in document.get("vhosts") or ():
        name, cell = str(entry["name"]), entry.get("cell")
        if cell is not None and cell not in (cells.own, *cells.others):
            raise ConfigurationError(f"vhost '{name}': the cluster has no cell {cell}")
        if cells.is_being_deleted(name):
            raise ConfigurationError(f"vhost '{name}' is being deleted, try again later")
        present = cells.cell_of(name)
        if present is None:
            wanted[name] = cell
        elif cell not in (None, present):
            raise ConfigurationError(f"vhost '{name}' is in cell {present} of the cluster, and cannot be moved")
    return cells.spread(wanted)


@dataclass(slots=True)
class DefinitionParts:
    """The definitions of this cell (``own``) and of the ``others`` by number, and the virtual hosts of these that have
    permissions or are in the definitions (``elsewhere``).
    """

    own: Fields
    others: dict[int, Fields] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)


def split(
    cells: Cells, document: Fields, planned: Mapping[str, int], default_vhost: str = "/"
) -> Generator[None, None, DefinitionParts]:
    """Return the parts of definitions whose form is checked, if new virtual hosts are made as ``planned``."""
    parts = DefinitionParts(dict(document))
    head = {name: value for name, value in document.items() if not isinstance(value, list | dict)}

    def cell_of(vhost: str) -> int:
        return planned.get(vhost) or cells.cell_of(vhost) or cells.own

    for category in _WITH_VHOST:
        kept: list[Fields] = []
        for number, entry in enumerate(document.get(category) or ()):
            vhost = str(entry["name"] if category == "vhosts" else entry.get("vhost") or default_vhost)
            cell = cell_of(vhost)
            if cell != cells.own:
                parts.elsewhere.add(vhost)
            if cell == cells.own or category in _OF_USERS:
                kept.append(_without_cell(entry))
            elif category == "vhosts":
                parts.others.setdefault(cell, dict(head)).setdefault(category, []).append(_without_cell(entry))
            else:
                parts.others.setdefault(cell, dict(head)).setdefault(category, []).append({**entry, "vhost": vhost})
            if number % _STEP == 0:
                yield
        if category in document:
            parts.own[category] = kept
    return parts


def _without_cell(entry: Fields) -> Fields:
    """Return an entry as a cell gets it, which does not ask where it belongs."""
    return {name: value for name, value in entry.items() if name != "cell"} if "cell" in entry else entry


def without_moves(cells: Cells, document: Fields) -> tuple[Fields, list[str]]:
    """Return definitions whose form is checked without the cells of virtual hosts that exist in another one, and the
    names of these.
    """
    moved = [
        name
        for entry in document.get("vhosts") or ()
        if entry.get("cell") is not None and cells.cell_of(name := str(entry["name"])) not in (None, entry["cell"])
    ]
    if not moved:
        return document, moved
    staying = set(moved)
    entries = [_without_cell(entry) if str(entry["name"]) in staying else entry for entry in document["vhosts"]]
    return {**document, "vhosts": entries}, moved


def without_vhosts(document: Fields, names: Collection[str], default_vhost: str) -> Fields:
    """Return definitions whose form is checked without those of some virtual hosts."""
    left = dict(document)
    for category in _WITH_VHOST:
        key = "name" if category == "vhosts" else "vhost"
        if category in document:
            left[category] = [each for each in document[category] if (each.get(key) or default_vhost) not in names]
    return left
