"""The bounds that a filter implies."""

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

from gateway.columnar.encoding.schema import MESSAGES
from gateway.sql.bounds import Bounds, offset_bounds, time_bounds_ms

OFFSET = pc.field("offset")
TIME = pc.field("timestamp")
WITHIN = Bounds(0, 1000)


@pytest.mark.parametrize(
    ("wanted", "bounds"),
    [
        (None, WITHIN),
        (OFFSET == 7, (7, 8)),
        ((OFFSET >= 5) & (OFFSET < 9), (5, 9)),
        ((OFFSET > 5) & (pc.field("queue") == "q"), (6, 1000)),
        ((OFFSET > 5) | (pc.field("queue") == "q"), WITHIN),
        (OFFSET > 5000, (1000, 1000)),
        (OFFSET < 0, (0, 0)),
        (pc.field("body") == b"x", WITHIN),
    ],
)
def test_offsets(wanted: pc.Expression | None, bounds: tuple[int, int]) -> None:
    found = offset_bounds(wanted, MESSAGES, WITHIN)
    assert found == bounds or found.first >= found.end >= bounds[1]


def test_times() -> None:
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    found = time_bounds_ms((since <= TIME) & (until > TIME), MESSAGES)
    assert found == (int(since.timestamp() * 1000), int(until.timestamp() * 1000))


def test_times_between_two_milliseconds() -> None:
    moment = datetime(2026, 1, 1, microsecond=1500, tzinfo=UTC)
    ms = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    assert time_bounds_ms(moment == TIME, MESSAGES) == (ms + 1, ms + 2)
