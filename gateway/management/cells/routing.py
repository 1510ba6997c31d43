"""The cell that answers a request: that of its virtual host, or the first one, which may ask the others too."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

from gateway.management.cells.cells import Cells
from gateway.management.cells.numbering import cell_of_number
from gateway.management.http.bodies import digits
from gateway.management.http.errors import bad_request

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
        "/trace-files/<name>",
    }
)

#: Lists without pages of what each cell has for itself; the entries get the number of their cell.
LISTS: Final = frozenset({"/traces", "/trace-files", "/workbench/jobs", "/workbench/undo"})

#: Paths with a number that says which cell has what they are about, and its name in the path. The query says it for
#: the small numbers of cells that had them before: from an older version, or a migration.
NUMBERED: Final = {"/workbench/jobs/<id>": "id", "/workbench/undo/<id>": "id", "/audit/<number>": "number"}

#: Health checks that fail if one cell fails.
OF_ALL: Final = frozenset(
    {
        *("/health/checks/alarms", "/health/checks/local-alarms", "/healthchecks/node", "/health/checks/virtual-hosts"),
        "/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/<pattern>",
    }
)

#: Health checks that hold while the first cell is well: clients of other cells must not lose a node with it.
OF_SERVICE: Final = frozenset(
    {
        "/health/checks/ready-to-serve-clients",
        "/health/checks/is-in-service",
        "/health/checks/below-node-connection-limit",
    }
)

#: Paths of what each cell has for itself, which answer for the cell that the query names.
_NAMED: Final = (*LISTS, *NUMBERED, "/trace-files/<name>", "/audit", *OF_ALL, *OF_SERVICE)

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


def cell_for(cells: Cells, path: str, names: Mapping[str, str], query: Mapping[str, str]) -> int | None:
    """Return the other cell whose leader answers a request; ``None`` if this one does.

    :raises HttpError: if the query names a cell that there is not.
    """
    if path in NUMBERED and "cell" not in query:
        number = digits(names[NUMBERED[path]])
        cell = None if number is None else cell_of_number(number)
        return cell if cell in cells.others else None
    if path in _NAMED and "cell" in query:
        cell = named_cell(cells, query["cell"])
    else:
        vhost = vhost_of(path, names)
        cell = None if vhost is None else cells.cell_of(vhost)
    return None if cell == cells.own else cell


def named_cell(cells: Cells, text: str) -> int:
    """Return the cell that a query names. :raises HttpError: if there is none."""
    cell = digits(text)
    if cell is None or cell not in (cells.own, *cells.others):
        raise bad_request(f"the cluster has no cell {text[:100]}")
    return cell


def put_vhost(method: str, path: str, names: Mapping[str, str]) -> str | None:
    """Return the name of the virtual host that a request makes or changes; ``None`` if it does neither."""
    return unquote(names["name"]) if (method, path) == ("PUT", _ONE_VHOST) else None


def made_vhost(cells: Cells, method: str, path: str, names: Mapping[str, str]) -> str | None:
    """Return the name of the virtual host that a request makes; ``None`` if it does not make one."""
    name = put_vhost(method, path, names)
    return name if name is not None and cells.cell_of(name) is None else None


def joined_query(query: Mapping[str, str]) -> dict[str, str]:
    """Return the query for the listing of another cell, which is joined with the others before it is cut."""
    kept = {name: value for name, value in query.items() if name not in _LATER}
    if columns := query.get("columns"):
        needed = [columns, "vhost", "name", query.get("sort", "")]
        kept["columns"] = ",".join(filter(None, needed))
    return kept
