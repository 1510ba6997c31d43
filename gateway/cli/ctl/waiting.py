"""Waiting for a state of the broker, with a line about it on the terminal."""

import time
from collections.abc import Callable
from typing import Final

from gateway.cli.ctl.errors import TimedOut
from gateway.cli.ctl.session import VerbSession

_POLL_S: Final = 0.2


def wait_until(
    session: VerbSession, action: str, is_done: Callable[[], bool], *, default_s: float, late: str = ""
) -> None:
    """Wait until ``is_done``, for ``--timeout`` seconds, or ``default_s`` without it.

    :raises TimedOut: with the text ``late``, or one with the time limit.
    """
    timeout_s = default_s if session.timeout_s is None else session.timeout_s
    ends_s = time.monotonic() + timeout_s
    with session.progress.during(action):
        while not is_done():
            if time.monotonic() + _POLL_S > ends_s:
                raise TimedOut(late or f"{action} took more than {timeout_s:g} s")
            time.sleep(_POLL_S)
