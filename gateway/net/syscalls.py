"""The system calls made for every message: wait, receive, send, the time, and the stopwatch of turns.

They are in C if the packages are compiled. The standard library's wrappers accept arguments of many types and release
the interpreter's lock around calls that never wait. For a small packet that is a large part of its cost
(docs/adr/0013-system-calls-in-c.md).
"""

import _socket
import os
import socket
import time
from collections.abc import Callable
from itertools import chain
from select import epoll
from typing import Any, Final, Protocol

try:
    from gateway.net import _syscalls as native
except ImportError:  # run from source
    native = None  # type: ignore[assignment]

#: The most events that one ``Wait`` returns.
MOST_EVENTS: Final = 128


#: Read from a non-blocking socket, at most as many bytes; empty when the peer closed its side. Raises ``OSError``:
#: ``BlockingIOError`` when there is nothing yet, others when the connection is broken.
receive: Final[Callable[[int, int], bytes]] = os.read if native is None else native.receive

#: Write to a non-blocking socket as much as it takes; return the number of bytes. Raises ``OSError`` likewise.
send: Final[Callable[[int, bytes], int]] = os.write if native is None else native.send


def with_socket(descriptor: int, use: Callable[[Any], Any]) -> Any:  # Any: ``_socket.socket`` has methods without types
    """Return what ``use`` returns for a socket object of a descriptor, which stays open.

    Without a family, the object would ask the system three times; that of IPv6 has room for addresses of both.
    """
    it = _socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, descriptor)
    try:
        return use(it)
    finally:
        it.detach()


def _accept(listener: int) -> tuple[int, str, int]:
    descriptor, address = with_socket(listener, lambda it: it._accept())
    os.set_blocking(descriptor, False)
    if len(address) == 4 and address[3]:  # link-local: the name of its interface is a part of the address
        numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
        address = (socket.getnameinfo(address, numeric)[0], address[1])
    return descriptor, address[0], address[1]


def _close_output(descriptor: int) -> None:
    with_socket(descriptor, lambda it: it.shutdown(socket.SHUT_WR))


#: Accept a connection of a non-blocking listening socket; return its descriptor, also non-blocking, and the host and
#: port of the peer. Raises ``OSError``: ``BlockingIOError`` when none waits.
accept: Final[Callable[[int], tuple[int, str, int]]] = _accept if native is None else native.accept

#: Close the output side of a socket. Raises ``OSError`` when the connection is broken.
close_output: Final[Callable[[int], None]] = _close_output if native is None else native.close_output


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


#: Milliseconds since the epoch.
wall_ms: Final[Callable[[], int]] = _wall_ms if native is None else native.wall_ms


class Stopwatch(Protocol):
    """Measures turns and their parts, in seconds. Short turns are counted; nothing else is known of them."""

    @property
    def short_count(self) -> int:
        """The number of short turns."""

    @property
    def short_total_s(self) -> float:
        """The sum of their lengths."""

    def start(self) -> None:
        """Start a turn and its first part."""

    def part(self) -> float | None:
        """End a part, and start the next one; return its length if it is long."""

    def stop(self) -> float | None:
        """End the turn, if one has begun; return its length if it is not short."""


class _Stopwatch:
    __slots__ = ("_is_running", "_part_s", "_part_started_s", "_short_s", "_started_s", "short_count", "short_total_s")

    def __init__(self, short_s: float, part_s: float) -> None:
        self.short_count = 0
        self.short_total_s = 0.0
        self._short_s = short_s
        self._part_s = part_s
        self._is_running = False
        self._started_s = self._part_started_s = time.monotonic()

    def start(self) -> None:
        self._is_running = True
        self._started_s = self._part_started_s = time.monotonic()

    def part(self) -> float | None:
        now_s = time.monotonic()
        seconds, self._part_started_s = now_s - self._part_started_s, now_s
        return seconds if seconds > self._part_s else None

    def stop(self) -> float | None:
        if not self._is_running:
            return None
        self._is_running = False
        seconds = time.monotonic() - self._started_s
        if seconds >= self._short_s:
            return seconds
        self.short_count += 1
        self.short_total_s += seconds
        return None


#: Return a stopwatch: turns shorter than the first number of seconds are short, parts longer than the second are long.
stopwatch: Final[Callable[[float, float], Stopwatch]] = _Stopwatch if native is None else native.Stopwatch


class Waiter(Protocol):
    """Waits for the descriptors registered in an epoll."""

    def wait(self, until_s: float, most: int) -> tuple[int, ...] | None:
        """Wait until the wall clock shows ``until_s``, for ``most`` events at most.

        Return descriptors and their flags alternately: the ready ones, otherwise the first to become ready, otherwise
        an empty tuple, as after a signal. Return ``None`` when the time has come, eventually even if there are always
        events. With 0 poll without waiting.
        """

    def wait_for_turn(self, until_s: float, most: int, watch: Stopwatch) -> tuple[int, ...] | float | None:
        """End the turn that ``watch`` measures, wait, and start the next turn if there are events.

        Return the length of the turn instead, without waiting, if it was not short. This measures turns without a call
        of its own, which would cost a part of a small packet's time.
        """


class _Waiter:
    __slots__ = ("_poller",)

    def __init__(self, poller: epoll) -> None:
        self._poller = poller

    def wait(self, until_s: float, most: int) -> tuple[int, ...] | None:
        left_s = until_s - time.time() if until_s else 0.0
        if left_s <= 0.0 and until_s:
            return None
        return tuple(chain.from_iterable(self._poller.poll(min(left_s, 3600.0), min(most, MOST_EVENTS))))

    def wait_for_turn(self, until_s: float, most: int, watch: Stopwatch) -> tuple[int, ...] | float | None:
        if (seconds := watch.stop()) is not None:
            return seconds
        ready = self.wait(until_s, most)
        if ready is not None:
            watch.start()
        return ready


def waiter(poller: epoll) -> Waiter:
    """Return a ``Waiter`` for the descriptors registered in ``poller``."""
    return _Waiter(poller) if native is None else native.Waiter(poller.fileno())
