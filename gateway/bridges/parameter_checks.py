"""Checks of runtime parameters, with RabbitMQ's error texts.

A check takes the name and the value of a key, and returns the error text, empty if the value is valid.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.erlang_terms import as_erlang

Check: TypeAlias = Callable[[str, Value], str]


class ParameterKey(NamedTuple):
    """A key of a parameter's value."""

    name: str
    check: Check
    is_mandatory: bool = False


def is_number(name: str, value: Value) -> str:
    """Check for a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    return f"{name} should be a number, actually was {as_erlang(value)}"


def is_count(name: str, value: Value) -> str:
    """Check for an integer that is not negative. RabbitMQ checks for a number; a link would fail later."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return ""
    return is_number(name, value) or f"{name} should be a non-negative integer, actually was {as_erlang(value)}"


def is_text(name: str, value: Value) -> str:
    """Check for a string."""
    return "" if isinstance(value, str) else f"{name} should be binary, actually was {as_erlang(value)}"


def is_truth(name: str, value: Value) -> str:
    """Check for a truth value."""
    return "" if isinstance(value, bool) else f"{name} should be boolean, actually was {as_erlang(value)}"


def is_table(name: str, value: Value) -> str:
    """Check for an object."""
    return "" if isinstance(value, dict) else f"{name} should be a map, actually was {as_erlang(value)}"


def one_of(*allowed: str) -> Check:
    """Return a check for one of these strings."""

    def check(name: str, value: Value) -> str:
        if isinstance(value, str) and value in allowed:
            return ""
        return is_text(name, value) or (
            f"{name} should be one of {as_erlang(list(allowed))}, actually was {as_erlang(value)}"
        )

    return check


def each(check: Check) -> Check:
    """Return a check for one value, or for a list of them that is not empty."""

    def check_all(name: str, value: Value) -> str:
        if isinstance(value, str):
            return check(name, value)
        if not isinstance(value, list) or not value:
            return f"{name} should be list, actually was {as_erlang(value)}"
        return next((fault for fault in (check(name, item) for item in value) if fault), "")

    return check_all


def faults_of(name: str, value: Value, keys: Sequence[ParameterKey]) -> list[str]:
    """Return the errors in the value of the parameter ``name``: missing, invalid and unknown keys."""
    if not isinstance(value, dict):
        return [f"{name} not a list {as_erlang(value)}"]
    faults = []
    for key in keys:
        if key.name in value:
            faults.append(key.check(key.name, value[key.name]))
        elif key.is_mandatory:
            faults.append(f'Key "{key.name}" not found in {name}')
    known = {key.name for key in keys}
    if unknown := {key: item for key, item in value.items() if key not in known}:
        terms = ",".join(f"{{{as_erlang(key)},{as_erlang(item)}}}" for key, item in unknown.items())
        faults.append(f"Unrecognised terms [{terms}] in {name}")
    return [fault for fault in faults if fault]


def require_none(faults: Sequence[str]) -> None:
    """Refuse a parameter with errors. :raises PreconditionFailed: with all of them, a line each."""
    if faults:
        raise PreconditionFailed("Validation failed\n\n" + "\n".join(faults) + "\n")


def uris_of(value: Mapping[str, Value], key: str) -> tuple[str, ...]:
    """Return the URIs of a valid parameter: one, or a list of them."""
    uris = value[key]
    return tuple(str(uri) for uri in uris) if isinstance(uris, list) else (str(uris),)
