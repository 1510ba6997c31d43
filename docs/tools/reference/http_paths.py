"""The paths of the management API, from its OpenAPI document."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from docs.tools.reference.table import NOTE, code, table
from gateway.management.openapi.document import document
from gateway.management.resources.table import ROUTES

Object = Mapping[str, Any]  # an object of OpenAPI

_HEAD: Final = f"""\
# Paths of the HTTP API

[management.md](../management.md) explains logins, errors, lists in pages and rates; `GET /api/openapi.json` has the
same with the types of the fields. Names in paths are percent-encoded: the virtual host `/` is `%2F`. In the column of
the body, optional members are in brackets. {NOTE}
"""

#: Parameters of the query that many lists share, explained once.
SHARED: Final[Mapping[str, str]] = {
    "columns": "names of the members to return, separated by commas",
    "page, page_size": "a page of the list, from 1, and its length",
    "name, use_regex": "a part of the name, or with `use_regex=true` a pattern",
    "sort, sort_reverse": "a member to sort by, and whether descending",
    "disable_stats, enable_queue_totals": "lists without rates, which are cheap",
    "lengths_age, msg_rates_age, data_rates_age, node_stats_age": "the age of the oldest sample, in seconds",
    "lengths_incr, msg_rates_incr, data_rates_incr, node_stats_incr": "the interval of samples, in seconds",
}

_SHARED_NAMES: Final = frozenset(name for names in SHARED for name in names.split(", ")) - {"name"}


def page() -> str:
    """Return the page."""
    return "\n".join(_lines(document(ROUTES)["paths"])) + "\n"


def _lines(paths: Mapping[str, Mapping[str, Object]]) -> Iterator[str]:
    yield _HEAD
    yield "## Parameters of lists\n"
    yield from table(("Query", "Meaning"), ((", ".join(map(code, key.split(", "))), SHARED[key]) for key in SHARED))
    for subject in dict.fromkeys(operation["tags"][0] for methods in paths.values() for operation in methods.values()):
        yield f"\n## `{subject}`\n"
        rows = (
            _row(path, method, operation)
            for path, methods in paths.items()
            for method, operation in methods.items()
            if operation["tags"][0] == subject
        )
        yield from table(("Request", "Effect", "Required tag", "Query", "Body"), rows)


def _row(path: str, method: str, operation: Object) -> tuple[str, str, str, str, str]:
    summary = operation.get("summary", "").replace("<", "&lt;")
    return (
        code(f"{method.upper()} {path}"),
        summary,
        operation.get("x-required-tag", ""),
        ", ".join(map(code, _query(operation.get("parameters", ())))),
        _body(operation),
    )


def _query(parameters: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the parameters of the query that are not those of all lists; ``name`` is one beside ``use_regex``."""
    names = [parameter["name"] for parameter in parameters if parameter["in"] == "query"]
    own = [name for name in names if name not in _SHARED_NAMES]
    return [name for name in own if name != "name"] if "use_regex" in names else own


def _body(operation: Object) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Object = next((kind["schema"] for kind in content.values()), {})
    required = schema.get("required", ())
    members = [name if name in required else f"[{name}]" for name in schema.get("properties", {})]
    return ", ".join(map(code, members))
