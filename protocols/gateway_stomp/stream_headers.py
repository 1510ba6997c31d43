"""Stream arguments in the headers of a SUBSCRIBE, as the kernel's consumer arguments."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from gateway.kernel.messages.message import Arguments, Value
from gateway_stomp.translate import LATEST_S, truth_of, whole_number

OFFSET: Final = "x-stream-offset"
"""In a SUBSCRIBE, the start position; in a MESSAGE, its offset in the stream."""

_FILTER: Final = "x-stream-filter"
_UNFILTERED: Final = "x-stream-match-unfiltered"
_CONSUMER: Final = "x-stream-consumer"
_SINGLE: Final = "x-single-active-consumer"


def stream_arguments(headers: Mapping[str, str]) -> Arguments:
    """Return the stream arguments of a SUBSCRIBE; empty if there are none.

    An offset is ``first``, ``last``, ``next``, ``offset=5``, ``timestamp=`` and seconds, or an age such as ``5m``.

    :raises PreconditionFailed: when a value is not a number, as its header requires.
    """
    arguments: dict[str, Value] = {}
    if OFFSET in headers:
        arguments[OFFSET] = _offset(headers[OFFSET].strip())
    if _FILTER in headers:
        arguments[_FILTER] = [value.strip() for value in headers[_FILTER].split(",")]
    unfiltered = truth_of(headers, _UNFILTERED)
    if unfiltered is not None:
        arguments[_UNFILTERED] = unfiltered
    if _CONSUMER in headers:
        arguments[_CONSUMER] = headers[_CONSUMER]
        is_single = truth_of(headers, _SINGLE)
        if is_single is not None:
            arguments[_SINGLE] = is_single
    return arguments


def _offset(text: str) -> Value:
    kind, is_numbered, number = text.partition("=")
    if not is_numbered or kind not in ("offset", "timestamp"):
        return text
    value = whole_number(OFFSET, number)
    return value if kind == "offset" else datetime.fromtimestamp(max(0, min(value, LATEST_S)), UTC)
