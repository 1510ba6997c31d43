"""The system calls that every message meets: wait, receive, send, and what time it is.

They are in C where the packages were compiled. The standard library's wrappers take arguments of many kinds and let go
of the interpreter's lock around calls that never wait. For a small packet that is a good part of its cost
(docs/adr/0013-system-calls-in-c.md).
"""

import os
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from select import epoll
from typing import Final, TypeAlias

try:
    from gateway.net import _syscalls as native
except ImportError:  # run from source
    native = None  # type: ignore[assignment]

#: The most bytes that one call of ``receive`` takes, and the most events that a ``Wait`` tells.
MOST_BYTES: Final = 64 * 1024
MOST_EVENTS: Final = 128

Wait: TypeAlias = Callable[[float, int], tuple[int, ...] | None]
"""Waits until the wall clock shows so many seconds, for as many events at most.

Returns descriptors and their events in turns, as ``epoll`` has them: those that are there, else the first to come, else
none, as after a signal. ``None`` says that the time has come; it is said in the end, however many events there are.
With 0 it looks and does not wait.
"""


def wait_for(poller: epoll) -> Wait:
    """Return what waits for the descriptors that ``poller`` watches."""
    return partial(_wait, poller) if native is None else native.Waiter(poller.fileno()).wait


def _wait(poller: epoll, until_s: float, most: int) -> tuple[int, ...] | None:
    left_s = until_s - time.time() if until_s else 0.0
    if left_s <= 0.0 and until_s:
        return None
    return tuple(chain.from_iterable(poller.poll(min(left_s, 3600.0), min(most, MOST_EVENTS))))


def _receive(descriptor: int) -> bytes:
    return os.read(descriptor, MOST_BYTES)


#: Read what a non-blocking socket has, at most ``MOST_BYTES``; nothing when the peer ended. Raises ``OSError``:
#: ``BlockingIOError`` when there is nothing yet, others when the connection is broken.
receive: Final[Callable[[int], bytes]] = _receive if native is None else native.receive

#: Write to a non-blocking socket as much as it takes; return how many bytes that is. Raises ``OSError`` likewise.
send: Final[Callable[[int, bytes], int]] = os.write if native is None else native.send


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


#: Milliseconds since the epoch.
wall_ms: Final[Callable[[], int]] = _wall_ms if native is None else native.wall_ms
