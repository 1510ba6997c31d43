"""Schemas in short form, as the tables of this package write them.

``fields("name:s! size:i policy:s?")`` is an object with a required string, a number and a string or null. The types are
those of ``_TYPES``; a name in capitals refers to a schema of the document, ``[Name]`` is a list of them.
"""

from typing import Any, Final

Schema = dict[str, Any]

_TYPES: Final[dict[str, Schema]] = {
    "s": {"type": "string"},
    "i": {"type": "integer"},
    "n": {"type": "number"},
    "b": {"type": "boolean"},
    "o": {"type": "object"},
    "a": {"type": "array"},
    "x": {},
}


def ref(name: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def schema(text: str) -> Schema:
    """Return a schema: ``s``, ``s?``, ``Queue``, ``[Queue]`` or ``a|b`` for the strings ``a`` and ``b``."""
    if text.startswith("["):
        return {"type": "array", "items": schema(text[1:-1])}
    if "|" in text:
        return {"type": "string", "enum": text.split("|")}
    if text in _TYPES:
        return _TYPES[text]
    if text.endswith("?"):
        inner = schema(text[:-1])
        return {"type": [inner["type"], "null"]} if "type" in inner else {"anyOf": [inner, {"type": "null"}]}
    return ref(text)


def fields(text: str) -> Schema:
    """Return an object with these fields; it may have others. ``!`` marks a required field, ``~`` one with a rate."""
    properties, required = {}, []
    for field in text.split():
        name, _, kind = field.rpartition(":")
        if kind.endswith("!"):
            required.append(name)
        properties[name] = schema(kind.rstrip("!~"))
        if kind.endswith("~"):
            properties[f"{name}_details"] = ref("Rate")
    described: Schema = {"type": "object", "properties": properties}
    return described | ({"required": required} if required else {})


def page_of(item: Schema) -> Schema:
    """Return the answer of a list: all entries, or the page that the query asks for."""
    page = fields(
        "filtered_count:i! item_count:i! page:i! page_count:i! page_size:i! total_count:i!",
    )
    page["properties"]["items"] = {"type": "array", "items": item}
    return {"oneOf": [{"type": "array", "items": item}, page]}
