"""The cell that answers a request: that of its virtual host, or the first one, which may ask the others too."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from gateway.management.cells.cells import Cells

#: Paths with a virtual host that the leader of the first cell answers: what they show or change is there.
_OF_FIRST: Final = (
    "/permissions/",
    "/topic-permissions/",
    "/vhosts/<name>/permissions",
    "/vhosts/<name>/topic-permissions",
)

_ONE_VHOST: Final = "/vhosts/<name>"
_VHOST_LIMITS: Final = "/vhost-limits/<name>"

#: Listings of all virtual hosts, whose entries are in all cells.
MERGED: Final = frozenset(
    {
        *("/vhosts", "/vhost-limits", "/queues", "/queues/detailed", "/exchanges", "/bindings", "/consumers"),
        *("/connections", "/connections/username/<user>", "/channels", "/policies", "/operator-policies"),
        *("/parameters", "/parameters/<component>", "/shovels", "/federation-links"),
        *(
            "/mqtt/sessions",
            "/archives",
            "/streams",
            "/stream/consumers",
            "/stream/super-streams",
            "/stomp/subscriptions",
        ),
    }
)

#: Paths of what belongs to one cell, and does not say which: the others are asked if the first one does not have it.
ANYWHERE: Final = frozenset(
    {
        *("/connections/<name>", "/connections/<name>/channels", "/connections/<name>/sessions", "/channels/<name>"),
    }
)

#: Requests that each cell carries out for itself.
EVERYWHERE: Final = frozenset({("DELETE", "/connections/username/<user>")})

#: The query of a listing that is applied after the listings of all cells are joined.
_LATER: Final = frozenset({"page", "page_size", "pagination", "name", "use_regex", "sort", "sort_reverse", "columns"})


def vhost_of(path: str, names: Mapping[str, str]) -> str | None:
    """Return the virtual host that a request is about; ``None`` if there is none, or the first cell answers anyway.

    ``path`` is that of the route, ``names`` are the names in the path, percent-encoded.
    """
    if path.startswith(_OF_FIRST):
        return None
    if "vhost" in names:
        return unquote(names["vhost"])
    if path.startswith((_ONE_VHOST, _VHOST_LIMITS)):
        return unquote(names["name"])
    return None


def cell_for(cells: Cells, path: str, names: Mapping[str, str]) -> int | None:
    """Return the other cell whose leader answers a request; ``None`` if this one does."""
    vhost = vhost_of(path, names)
    cell = None if vhost is None else cells.cell_of(vhost)
    return None if cell == cells.own else cell


def made_vhost(cells: Cells, method: str, path: str, names: Mapping[str, str]) -> str | None:
    """Return the name of the virtual host that a request makes; ``None`` if it does not make one."""
    if method != "PUT" or path != _ONE_VHOST:
        return None
    name = unquote(names["name"])
    return name if cells.cell_of(name) is None else None


def joined_query(query: Mapping[str, str]) -> dict[str, str]:
    """Return the query for the listing of another cell, which is joined with the others before it is cut."""
    kept = {name: value for name, value in query.items() if name not in _LATER}
    if columns := query.get("columns"):
        needed = [columns, "vhost", "name", query.get("sort", "")]
        kept["columns"] = ",".join(filter(None, needed))
    return kept
