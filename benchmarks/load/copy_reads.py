"""Streams of a cluster read over HTTP: at the leader alone, at its followers, and at all nodes.

    python -m benchmarks.load.copy_reads [--messages 300000] [--rounds 3] [--output FILE]

Three gateways on three NATS servers, on one machine. Three readers take one stream each, and throw the rows away. The
first read of each place includes the encoding; the later ones copy files. CPU is that of a gateway and of its process
that encodes.
"""

import argparse
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.clusters import Cluster, gateways
from benchmarks.load.processes import cpu_seconds

STREAMS: Final = ("bench.north", "bench.south", "bench.east")
BODY_BYTES: Final = 100
KIND: Final[Mapping[str, str | int]] = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 4 * 2**20}

#: The ports that each reader uses, by the number of the node; 0 is the leader.
PLACES: Final[Mapping[str, Sequence[int]]] = {
    "the leader": (0, 0, 0),
    "one follower": (1, 1, 1),
    "both followers": (1, 2, 1),
    "all nodes": (0, 1, 2),
}

_AUTHORIZATION: Final = "Basic " + b64encode(b"guest:guest").decode()
_TIMEOUT_S: Final = 60.0

#: How long the copies may take to have everything, in seconds.
_COPIED_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Reads:
    """One read of all streams: how long it took, and the CPU seconds of each node."""

    seconds: float
    cpu_s: Sequence[float]


def read(port: int, stream: str, end: int) -> Iterator[str]:
    """Read a stream; yield the node whose copy has answered, for each answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    offset = 0
    while offset < end:
        path = f"/api/pipeline/%2F/read?queue={stream}&from={offset}&to={end}"
        connection.request("GET", path, headers={"Authorization": _AUTHORIZATION})
        response = connection.getresponse()
        while response.read(1 << 18):
            pass
        if response.status != 200:
            raise RuntimeError(f"status {response.status} for {path}")
        yield response.headers.get("X-Read-At", "")
        offset = int(response.headers["X-Next-Offset"])
    connection.close()


def measure(cluster: Cluster, nodes: Sequence[int], messages: int) -> Reads:
    """Read each stream once, side by side. :raises RuntimeError: if a node has not answered as expected."""

    def take(work: tuple[int, str]) -> set[str]:
        node, stream = work
        return set(read(cluster.management[node], stream, messages))

    begin_s, cpu_s = time.monotonic(), list(map(cpu_seconds, cluster.gateways))
    with ThreadPoolExecutor(len(STREAMS)) as readers:
        answered = list(readers.map(take, zip(nodes, STREAMS, strict=True)))
    took_s = time.monotonic() - begin_s
    for node, places in zip(nodes, answered, strict=True):
        if len(places) != 1 or (places == {""}) is not (node == 0):
            raise RuntimeError(f"node {node} answered from {places}")
    return Reads(
        took_s, [after - before for after, before in zip(map(cpu_seconds, cluster.gateways), cpu_s, strict=True)]
    )


def fill_streams(cluster: Cluster, messages: int) -> None:
    """Fill the streams, and wait until each node has a copy of them."""
    with connected(cluster.ports[0]) as control:
        for stream in STREAMS:
            control.declare_queue(stream, durable=True, arguments=KIND)
    for stream in STREAMS:
        fill(cluster.ports[0], stream, messages, BODY_BYTES)
    end_s = time.monotonic() + _COPIED_S
    for port in cluster.management[1:]:
        for stream in STREAMS:
            while not all(_tail(port, stream, messages)):
                if time.monotonic() > end_s:
                    raise TimeoutError("the copies do not catch up")
                time.sleep(0.5)


def _tail(port: int, stream: str, end: int) -> Iterator[str]:
    """Yield the node whose copy has answered a read of the last message."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_S)
    path = f"/api/pipeline/%2F/read?queue={stream}&from={end - 1}&to={end}"
    connection.request("GET", path, headers={"Authorization": _AUTHORIZATION})
    response = connection.getresponse()
    response.read()
    connection.close()
    yield response.headers.get("X-Read-At", "")


def table(found: Mapping[str, Sequence[Reads]], rows: int) -> str:
    """Return the table of the first read of each place, and of the median of the later ones."""
    lines = [
        "| read at | | rows/s | CPU µs a row of the leader | of the followers |",
        "|---|---|---|---|---|",
    ]
    for place, reads in found.items():
        for name, some in (("first", reads[:1]), ("later", reads[1:])):
            rate = median(rows / each.seconds for each in some)
            leader = median(each.cpu_s[0] for each in some) * 1e6 / rows
            others = median(sum(each.cpu_s[1:]) for each in some) * 1e6 / rows
            lines.append(f"| {place} | {name} | {rate:,.0f} | {leader:.2f} | {others:.2f} |")
    return "\n".join(lines)


def main() -> int:
    """Measure each place in turns, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=300_000, help="messages of each stream (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="later reads of each place (default: %(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to this file, too")
    options = parser.parse_args()
    found: dict[str, list[Reads]] = {place: [] for place in PLACES}
    with tempfile.TemporaryDirectory(prefix="gateway-reads-") as directory, gateways(Path(directory)) as cluster:
        fill_streams(cluster, options.messages)
        for number in range(1 + options.rounds):
            for place, nodes in PLACES.items():
                found[place].append(measure(cluster, nodes, options.messages))
                print(f"{number} {place}: {found[place][-1]}", flush=True)
    shown = table(found, options.messages * len(STREAMS))
    print(shown)
    if options.output is not None:
        options.output.write_text(shown + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
