"""Arguments of consumers of streams."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from gateway.clients.bounds import number

_WORDS: Final = ("first", "last", "next")


def stream_consumer_arguments(
    start: Literal["first", "last", "next"] | int | datetime | timedelta | None = None,
    *,
    name: str | None = None,
    filters: Sequence[str] = (),
    match_unfiltered: bool = False,
) -> dict[str, Any]:  # Any: a value of a table of AMQP
    """Return the arguments of a consumer of a stream.

    :param start: where to begin: a word, an offset, a moment, or an age; ``None`` continues after the position that the
        broker stores for ``name``, or with the next message.
    :param name: the name under which the broker stores the consumer's position.
    :param filters: the filter values of wanted messages.
    :param match_unfiltered: whether messages without a filter value are wanted, too.
    :raises ValueError: if the offset is negative, the age less than a second, the word unknown, or a moment without a
        time zone.
    """
    found: dict[str, Any] = {}
    if start is not None:
        found["x-stream-offset"] = _offset(start)
    if name is not None:
        found["x-stream-consumer"] = name
    if filters:
        found["x-stream-filter"] = list(filters)
    if match_unfiltered:
        found["x-stream-match-unfiltered"] = True
    return found


def _offset(start: str | int | datetime | timedelta) -> str | int | datetime:
    if isinstance(start, timedelta):
        if start < timedelta(seconds=1):
            raise ValueError(f"start must be an age of a second or more, not {start!r}")
        return f"{int(start.total_seconds())}s"
    if isinstance(start, datetime) and start.tzinfo is None:
        raise ValueError(f"start must have a time zone, not {start!r}")
    if isinstance(start, int):
        return number("start", start, 0)
    if isinstance(start, str) and start not in _WORDS:
        raise ValueError(f"start must be one of {', '.join(_WORDS)}, not {start!r}")
    return start
