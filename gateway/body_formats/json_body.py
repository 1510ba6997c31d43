"""Bounds of bodies in JSON, and places in them."""

from collections.abc import Sequence
from typing import Any, Final

#: The levels of a body that is compared with a schema. ``jsonschema-rs`` refuses what is nested deeper than 255, and
#: crashes far beyond that.
DEEPEST_JSON: Final = 200


def is_deep_json(body: bytes, value: Any) -> bool:  # Any: what JSON can hold
    """Return whether a body, whose value this is, has more levels than ``DEEPEST_JSON``."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST_JSON:
        return False
    level = [value]
    for _ in range(DEEPEST_JSON):
        level = [inner for each in level if isinstance(each, list | dict) for inner in _values(each)]
    return any(isinstance(each, list | dict) for each in level)


def _values(node: list[Any] | dict[str, Any]) -> Sequence[Any]:
    return list(node.values()) if isinstance(node, dict) else node


def json_place(path: Sequence[str | int]) -> str:
    """Return a place in a document as a JSON path, such as ``$.items[2].id``."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def fetch_no_schema(uri: str) -> Any:
    """Refuse to fetch the schema that another one refers to: a ``retriever`` of ``jsonschema-rs``."""
    raise LookupError(f"{uri}: other documents are not fetched")
