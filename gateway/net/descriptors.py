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

#: Seconds between two log lines about refused clients.
_LOG_INTERVAL_S: Final = 60.0


def raise_descriptor_limit() -> None:
    """Raise the process's limit of open files to the system's maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def are_descriptors_short() -> bool:
    """Return whether only the reserved descriptors are left.

    The system assigns the lowest free number, so the number of a new descriptor is a lower bound for the count in use.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    try:
        lowest_free = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return True
    os.close(lowest_free)
    return lowest_free >= limit - min(RESERVED, limit // 4)


class DescriptorGate(Factory):
    """Wraps the factory of a listener, and refuses connections while descriptors are short."""

    noisy = False

    def __init__(
        self,
        name: str,
        behind: Any,  # Any: Twisted's interfaces are not types
        are_short: Callable[[], bool] = are_descriptors_short,
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
