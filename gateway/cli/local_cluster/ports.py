"""The ports of a cluster on this machine: the usual ones if they are free, else others."""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

HOST: Final = "127.0.0.1"

#: The port of the first node for each listener; the next nodes have the next ones.
NODE_PORTS: Final = {"amqp": 5681, "mqtt": 1891, "stomp": 61621, "management": 15681, "prometheus": 15781}
INTERNAL_PORT: Final = 25681
NATS_PORTS: Final = {"client": 4281, "monitoring": 8281, "route": 6281}


def chosen(first: Mapping[str, int], at: int, taken: set[int]) -> dict[str, int]:
    """Return the ports of the process number ``at``, and add them to those that are taken."""
    found = {}
    for name, port in first.items():
        found[name] = _free((port + at,), taken)
        taken.add(found[name])
    return found


def _free(wanted: Iterable[int], taken: set[int]) -> int:
    """Return the first port that nothing listens on; the system chooses one if there is none."""
    for port in (*wanted, *(0 for _ in range(100))):
        if port in taken:
            continue
        try:
            with socket.create_server((HOST, port)) as bound:
                number: int = bound.getsockname()[1]
        except OSError:
            continue
        if number not in taken:
            return number
    raise OSError(f"no port of {HOST} is free")
