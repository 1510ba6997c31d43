"""Free ports for servers that get their port before they start, or keep it when they start again."""

import socket
from functools import cache
from itertools import cycle
from pathlib import Path
from random import SystemRandom
from typing import Final

HOST: Final = "127.0.0.1"

#: How many ports below those of outgoing connections are used, and how many of them one process has for itself.
_COUNT: Final = 12_000
_OF_A_PROCESS: Final = 500


class Share:
    """The ports of this process. A port comes again once all have had their turn.

    A port that is chosen is free until its server listens, so neither another process nor a later call may choose it.
    A socket with the number of the share in its name keeps other processes away; it ends with the process.
    """

    def __init__(self) -> None:
        lowest = _first_outgoing() - _COUNT
        self._reservation = socket.socket(socket.AF_UNIX)
        numbers = list(range(_COUNT // _OF_A_PROCESS))
        SystemRandom().shuffle(numbers)
        for number in numbers:
            try:
                self._reservation.bind(f"\0gateway-tests-ports-{number}")
            except OSError:
                continue
            first = lowest + number * _OF_A_PROCESS
            self._ports = cycle(range(first, first + _OF_A_PROCESS))
            return
        raise AssertionError(f"more than {len(numbers)} processes run tests")

    def next(self) -> int:
        """Return the next port."""
        return next(self._ports)


_share: Final = cache(Share)


def free_port() -> int:
    """Return a port that nothing listens on, and that the system gives to no outgoing connection.

    A port from the system's own range may become the end of a connection of another test before the server listens.
    """
    for _ in range(_OF_A_PROCESS):
        port = _share().next()
        try:
            with socket.create_server((HOST, port)):
                return port
        except OSError:
            continue
    raise AssertionError("no free port found")


def _first_outgoing() -> int:
    """Return the first port that the system gives to outgoing connections."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
