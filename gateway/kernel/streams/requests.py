"""Arguments of stream consumers: start offset, filter and name, with RabbitMQ's error texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Value
from gateway.kernel.settings.arguments import formatted, type_name
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.streams.filters import Filter

Start: TypeAlias = str | int | datetime
"""``first``, ``last``, ``next``, an age such as ``5m``, an offset, or a time."""

_PLACES: Final = ("first", "last", "next")

LONGEST_NAME: Final = 256
"""Bytes in the name of a consumer, as in RabbitMQ."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A stream consumer's arguments. Without a ``start`` it continues after its stored offset, or else at the end.

    One of a group (``is_grouped``) continues after the stored offset in any case; ``start`` is where the group begins.
    """

    start: Start | None
    wanted: Filter | None
    name: str | None
    is_grouped: bool = False


def parse_request(entity: str, arguments: Arguments) -> ReadRequest:
    """Parse the arguments of a consumer. ``entity`` is for example ``queue 'q' in vhost '/'``.

    :raises PreconditionFailed: with the invalid argument and its fault.
    """
    name = _name(entity, arguments)
    return ReadRequest(
        _start(entity, arguments), _wanted(entity, arguments), name, _is_grouped(entity, arguments, name)
    )


def _start(entity: str, arguments: Arguments) -> Start | None:
    if "x-stream-offset" not in arguments:
        return None
    value = arguments["x-stream-offset"]
    match value:
        case bool():
            pass
        case int() | datetime():
            return value
        case str() if value in _PLACES or age_ms(value) is not None:
            return value
    wrong = f"{{invalid_stream_offset_arg,{{{type_name(value)},{_as_erlang(value)}}}}}"
    raise _refusal("x-stream-offset", entity, wrong)


def _wanted(entity: str, arguments: Arguments) -> Filter | None:
    takes_unfiltered = arguments.get("x-stream-match-unfiltered", False)
    if not isinstance(takes_unfiltered, bool):
        raise _refusal("x-stream-match-unfiltered", entity, f"{{unacceptable_type,{type_name(takes_unfiltered)}}}")
    if "x-stream-filter" not in arguments:
        return None
    raw = arguments["x-stream-filter"]
    values = raw if isinstance(raw, list) else [raw]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        raise _refusal("x-stream-filter", entity, f"{{unacceptable_type,{type_name(raw)}}}")
    return Filter(texts, takes_unfiltered)


def _name(entity: str, arguments: Arguments) -> str | None:
    name = arguments.get("x-stream-consumer")
    if name is None:
        return None
    if not isinstance(name, str):
        raise _refusal("x-stream-consumer", entity, f"{{unacceptable_type,{type_name(name)}}}")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise _refusal(
            "x-stream-consumer", entity, "the name contains a lone surrogate, which UTF-8 cannot encode"
        ) from None
    if not 0 < size <= LONGEST_NAME:
        raise _refusal("x-stream-consumer", entity, f"the name must have 1 to {LONGEST_NAME} bytes, but has {size}")
    return name


def _is_grouped(entity: str, arguments: Arguments, name: str | None) -> bool:
    is_single = arguments.get("x-single-active-consumer", False)
    if not isinstance(is_single, bool):
        raise _refusal("x-single-active-consumer", entity, f"{{unacceptable_type,{type_name(is_single)}}}")
    if is_single and name is None:
        raise _refusal("x-single-active-consumer", entity, "it needs x-stream-consumer, the name of the group")
    return is_single


def _refusal(argument: str, entity: str, wrong: str) -> PreconditionFailed:
    return PreconditionFailed(f"invalid arg '{argument}' for {entity}: {wrong}")


def _as_erlang(value: Value) -> str:
    """Format a value as RabbitMQ prints it in this reply."""
    if value is None:
        return "undefined"
    if isinstance(value, str):
        return f'<<"{value}">>'
    if isinstance(value, bytes):
        return f'<<"{value.decode("utf-8", "backslashreplace")}">>'
    if isinstance(value, Mapping | list):
        return "..."
    return formatted(value)
