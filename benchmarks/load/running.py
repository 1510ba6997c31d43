"""A broker's process, from its first accepted connection to its orderly end."""

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load.processes import stop, wait_for_port


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: its ports on loopback, by protocol, and the process to measure."""

    peer: str
    product: str
    ports: Mapping[str, int]
    pid: int


@contextmanager
def running(
    peer: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path,
    ports: Mapping[str, int],
    product: Callable[[Mapping[str, int]], str],
    timeout_s: float,
) -> Iterator[Broker]:
    """Run a broker; ``product`` returns its name and version once it listens on all its ports."""
    output = directory / "output.log"
    with output.open("ab") as log:
        # A new session, so that Ctrl-C reaches only the benchmark, which then stops the broker.
        process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        for port in ports.values():
            wait_for_port(process, port, output, timeout_s)
        yield Broker(peer, product(ports), ports, process.pid)
    finally:
        stop(process)
