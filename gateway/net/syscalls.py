"""The system calls made for every message: wait, receive, send and the time.

They are in C if the packages are compiled. The standard library's wrappers accept arguments of many types and release
the interpreter's lock around calls that never wait. For a small packet that is a large part of its cost
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

#: The most bytes that one call of ``receive`` returns, and the most events that one ``Wait`` returns.
MOST_BYTES: Final = 64 * 1024
MOST_EVENTS: Final = 128

Wait: TypeAlias = Callable[[float, int], tuple[int, ...] | None]
"""Waits until the wall clock shows ``until_s``, for ``most`` events at most.

Returns descriptors and their flags alternately: the ready ones, otherwise the first to become ready, otherwise an empty
tuple, as after a signal. Returns ``None`` when the time has come, eventually even if there are always events. With 0 it
polls without waiting.
"""


def wait_for(poller: epoll) -> Wait:
    """Return a ``Wait`` on the descriptors registered in ``poller``."""
    return partial(_wait, poller) if native is None else native.Waiter(poller.fileno()).wait


def _wait(poller: epoll, until_s: float, most: int) -> tuple[int, ...] | None:
    left_s = until_s - time.time() if until_s else 0.0
    if left_s <= 0.0 and until_s:
        return None
    return tuple(chain.from_iterable(poller.poll(min(left_s, 3600.0), min(most, MOST_EVENTS))))


def _receive(descriptor: int) -> bytes:
    return os.read(descriptor, MOST_BYTES)


#: Read from a non-blocking socket, at most ``MOST_BYTES``; empty when the peer closed its side. Raises ``OSError``:
#: ``BlockingIOError`` when there is nothing yet, others when the connection is broken.
receive: Final[Callable[[int], bytes]] = _receive if native is None else native.receive

#: Write to a non-blocking socket as much as it takes; return the number of bytes. Raises ``OSError`` likewise.
send: Final[Callable[[int, bytes], int]] = os.write if native is None else native.send


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


#: Milliseconds since the epoch.
wall_ms: Final[Callable[[], int]] = _wall_ms if native is None else native.wall_ms
