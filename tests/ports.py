"""Free ports for servers that get their port before they start, or keep it when they start again."""

import socket
from pathlib import Path
from random import SystemRandom
from typing import Final

HOST: Final = "127.0.0.1"

#: How many ports below those of outgoing connections are tried.
_COUNT: Final = 12_000
_MOST_ATTEMPTS: Final = 100


def free_port() -> int:
    """Return a port that nothing listens on, and that the system gives to no outgoing connection.

    A port from the system's own range may become the end of a connection of another test before the server listens.
    """
    first = _first_outgoing()
    random = SystemRandom()  # tests that run side by side must not choose the same ports
    for _ in range(_MOST_ATTEMPTS):
        port = random.randrange(first - _COUNT, first)
        try:
            with socket.create_server((HOST, port)):
                return port
        except OSError:
            continue
    raise AssertionError("no free port found")


def _first_outgoing() -> int:
    """Return the first port that the system gives to outgoing connections."""
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
