"""Waiting for a condition with a time limit. Tests do not sleep for a fixed time, except those that
``tests/architecture/test_fixed_sleeps.py`` lists with their reasons.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: The time limit of a wait, and the time between two checks, in seconds.
TIMEOUT_S: Final = 40.0
INTERVAL_S: Final = 0.02


def wait_until(
    condition: Callable[[], T],
    failure: str | Callable[[], str] = "the condition was not met in time",
    *,
    timeout_s: float = TIMEOUT_S,
    interval_s: float = INTERVAL_S,
) -> T:
    """Return the first true value of ``condition``. After the time limit fail with ``failure``, a text or its source.

    An ``AssertionError`` of the condition fails the test at once.
    """
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, failure if isinstance(failure, str) else failure()
        time.sleep(interval_s)
    return value


def wait_until_stable(count: Callable[[], int], *, for_s: float = 1.0, timeout_s: float = TIMEOUT_S) -> int:
    """Return a count once it has not changed for ``for_s`` seconds."""
    last, since = count(), time.monotonic()

    def is_stable() -> bool:
        nonlocal last, since
        if (current := count()) != last:
            last, since = current, time.monotonic()
        return time.monotonic() - since >= for_s

    wait_until(is_stable, lambda: f"it still changes: {last}", timeout_s=timeout_s)
    return last
