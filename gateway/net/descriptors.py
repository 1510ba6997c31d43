"""File descriptors: raise the limit, and reserve the last ones for the broker itself.

A client that would use a reserved descriptor is refused, so that the store, the log and child processes can still open
files.
"""

import os
import resource
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.protocol import Factory

from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit

_log: Final = StructuredLog("listeners")

#: Descriptors reserved for the broker's own files.
RESERVED: Final = 64

#: The highest limit that is set; some systems report no limit.
_MOST: Final = 2**20

#: A check is good for this share of the free descriptors as connections, at most ``_MOST_UNCHECKED``. It costs 5 µs,
#: most of it system calls.
_UNCHECKED_SHARE: Final = 1 / 16
_MOST_UNCHECKED: Final = 64

#: Seconds between two log lines about refused clients.
_LOG_INTERVAL_S: Final = 60.0


def raise_descriptor_limit() -> None:
    """Raise the process's limit of open files to the system's maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def free_descriptors() -> int:
    """Return the number of descriptors that are left beside the reserved ones, 0 if none is.

    The system assigns the lowest free number, so the number of a new descriptor is a lower bound for the count in use.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return _MOST
    try:
        lowest_free = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return 0
    os.close(lowest_free)
    return max(0, limit - min(RESERVED, limit // 4) - lowest_free)


class DescriptorCheck:
    """Tells whether only the reserved descriptors are left; while many are free, it looks for some connections only."""

    def __init__(self, free: Callable[[], int] = free_descriptors) -> None:
        self._free = free
        self._unchecked = 0

    def __call__(self) -> bool:
        """Return whether descriptors are short, before one more connection."""
        if self._unchecked:
            self._unchecked -= 1
            return False
        free = self._free()
        self._unchecked = min(int(free * _UNCHECKED_SHARE), _MOST_UNCHECKED)
        return free == 0


#: The check of the process: all listeners take from the same descriptors, and only one may be ahead of the checks.
_check: Final = DescriptorCheck()


class DescriptorGate(Factory):
    """Wraps the factory of a listener, and refuses connections while descriptors are short."""

    noisy = False

    def __init__(
        self,
        name: str,
        behind: Any,  # Any: Twisted's interfaces are not types
        are_short: Callable[[], bool] = _check,
        limit: RateLimit | None = None,
    ) -> None:
        self._name = name
        self._behind = behind
        self._are_short = are_short
        self._limit = limit or RateLimit(1, _LOG_INTERVAL_S)

    def doStart(self) -> None:  # noqa: N802 - Twisted's name
        """Start the wrapped factory; called by Twisted."""
        self._behind.doStart()

    def doStop(self) -> None:  # noqa: N802 - Twisted's name
        """Stop the wrapped factory; called by Twisted."""
        self._behind.doStop()

    def buildProtocol(self, addr: Any) -> Any:
        """Return the server side of a new connection; ``None`` closes it."""
        if not self._are_short():
            return self._behind.buildProtocol(addr)
        left_out = self._limit.passes(self._name)
        if left_out is not None:
            _log.warning("connection refused: no file descriptors are left", listener=self._name, repeated=left_out)
        return None
