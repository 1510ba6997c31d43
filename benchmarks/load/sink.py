"""The sink of Spark: one batch write of many rows into a queue or a stream, and what another client waits meanwhile.

    python -m benchmarks.load.sink [--rows 1000000] [--bytes 1000] [--into queue|stream] [--cores 0,1] [--direct]

With ``--direct`` one process sends prepared parts in place of Spark, so that the figures are those of the broker.

The phases are those that the broker reports: rows are *staged* while Spark runs its tasks, *checked* and *published*
after the commit. Two other clients ask without a pause: one for the length of a queue, one for confirms of persistent
messages of 100 bytes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.gateway import MANAGEMENT, launch_managed
from benchmarks.load.latency import latency
from benchmarks.load.pings import QUEUE, asking
from benchmarks.load.processes import cpu_seconds
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

TARGET: Final = "bench.sink"
CONFIRMED: Final = "bench.confirmed"
KINDS: Final[Mapping[str, Mapping[str, str | int]]] = {"queue": {}, "stream": {"x-queue-type": "stream"}}

IDLE: Final = "idle"
STAGED: Final = "staged"

#: Duration of the measurement beside an idle broker, and the pause between two looks at the batch, in seconds.
IDLE_S: Final = 5.0
LOOK_S: Final = 0.1

_PROJECT: Final = Path(__file__).parents[2]
_AUTHORIZATION: Final = "Basic " + b64encode(b"guest:guest").decode()


@dataclass
class Phase:
    """One phase: its duration, the broker's CPU time, and the waits of the other clients, in seconds."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    waits: list[float] = field(default_factory=list)
    confirms: list[float] = field(default_factory=list)


class Phases:
    """The phases of a write by name; ``name`` is that at hand."""

    def __init__(self, broker: Broker) -> None:
        self._pid = broker.pid
        self._since = (time.perf_counter(), cpu_seconds(broker.pid))
        self.name = IDLE
        self.by_name: dict[str, Phase] = {}

    @property
    def now(self) -> Phase:
        """The phase at hand."""
        return self.by_name.setdefault(self.name, Phase())

    def enter(self, name: str) -> None:
        """End the phase at hand, and begin another."""
        since_s, since_cpu_s = self._since
        self._since = (time.perf_counter(), cpu_seconds(self._pid))
        self.now.seconds += self._since[0] - since_s
        self.now.cpu_s += self._since[1] - since_cpu_s
        self.name = name

    def timed(self, question: Callable[[], object], waits: Callable[[Phase], list[float]]) -> None:
        """Ask, and note the wait."""
        phase, start = self.now, time.perf_counter()
        question()
        waits(phase).append(time.perf_counter() - start)


def measure(broker: Broker, rows: int, size: int, into: str, how: Sequence[str]) -> Phases:
    """Write the rows, and return the phases."""
    port = broker.ports[AMQP]
    with ExitStack() as stack:
        control, asked, other = (stack.enter_context(connected(port)) for _ in range(3))
        control.declare_queue(TARGET, durable=True, arguments=dict(KINDS[into]))
        control.declare_queue(QUEUE)
        other.declare_queue(CONFIRMED, durable=True, arguments={"x-max-length": 1000})
        other.confirm_select()
        phases = Phases(broker)
        length = partial(asked.declare_queue, QUEUE, passive=True)
        stack.enter_context(asking(partial(phases.timed, length, lambda phase: phase.waits)))
        publish = partial(_confirmed, other, wire.publish("", CONFIRMED, b"x" * 100, persistent=True))
        stack.enter_context(asking(partial(phases.timed, publish, lambda phase: phase.confirms)))
        time.sleep(IDLE_S)
        with writing(broker.ports[MANAGEMENT], rows, size, how) as is_over:
            phases.enter(STAGED)
            for state in _states(broker.ports[MANAGEMENT], is_over):
                if state != phases.name:
                    phases.enter(state)
        phases.enter(IDLE)
        found = control.declare_queue(TARGET, passive=True)
        if into == "queue" and found != rows:
            raise RuntimeError(f"the queue has {found} of {rows} rows")
    return phases


def _confirmed(client: Client, publish: bytes) -> None:
    """Publish a message, and wait for its confirm."""
    client.socket.sendall(publish)
    client.read_confirm()


def _states(port: int, is_over: Callable[[], bool]) -> Iterator[str]:
    """Yield the state of the write until it is over."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        while not is_over():
            connection.request("GET", "/api/pipeline/%2F/batches", headers={"Authorization": _AUTHORIZATION})
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            yield found["batches"][0]["state"] if found["batches"] else STAGED
            time.sleep(LOOK_S)


@contextmanager
def writing(port: int, rows: int, size: int, how: Sequence[str]) -> Iterator[Callable[[], bool]]:
    """Run the writer in its own process, which has started; the function tells whether the write is over."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(_PROJECT / "pipeline"), str(_PROJECT)))}
    command = [sys.executable, "-m", "benchmarks.load.sink", "--write", f"http://127.0.0.1:{port}"]
    command += ["--rows", str(rows), "--bytes", str(size), *how]
    with subprocess.Popen(
        command, cwd=_PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has started, and waits

        def is_over() -> bool:
            return process.poll() is not None

        assert process.stdin is not None
        process.stdin.close()
        yield is_over
    if process.returncode:
        raise RuntimeError(f"the write failed with status {process.returncode}")


def write(url: str, rows: int, size: int, cores: str) -> None:
    """Write rows with bodies of this size in one batch, once standard input is closed."""
    from pyspark.sql.functions import col, lit, rpad  # the benchmarks of the broker run without Spark

    from gateway_spark.session import session

    os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
    spark = session("bench", f"local[{len(cores.split(','))}]")
    frame = spark.range(rows, numPartitions=max(4, rows // 250_000))
    written = frame.select(rpad(col("id").cast("string"), size, lit("x")).alias("body"))
    print("started", flush=True)
    sys.stdin.read()
    written.write.format("gateway").options(url=url, exchange="", routingKey=TARGET).mode("append").save()
    spark.stop()


def write_directly(url: str, rows: int, size: int) -> None:
    """Send the rows in parts as a task of Spark does, and commit them, once standard input is closed."""
    from gateway_spark.client import Client
    from gateway_spark.framing import LENGTHS
    from gateway_spark.options import sink_options

    options = sink_options({"url": url, "exchange": ""}, is_stream=False)
    body = b"x" * size
    at_once = max(1, options.part_bytes // size)
    sizes = [min(at_once, rows - first) for first in range(0, rows, at_once)]
    follower = LENGTHS.pack(0, size) + body
    print("started", flush=True)
    sys.stdin.read()
    with closing(Client(options.address)) as client:
        for number, count in enumerate(sizes):
            part = LENGTHS.pack(2, size) + b"{}" + body + follower * (count - 1)
            client.stage({"attempt": "bench", "part": str(number)}, part)
        identity = {"producer": "bench", "query": "direct", "batch": 0}
        attempts = [["bench", len(sizes), rows]]
        client.commit(identity | {"attempts": attempts, "exchange": "", "routing_key": TARGET})


def table(phases: Phases, rows: int) -> str:
    """Return the table of the phases."""
    lines = [
        "| phase | s | rows/s | broker CPU µs a row | p50 / p99 / longest wait, ms | the same of confirms, ms |",
        "|---|---|---|---|---|---|",
    ]
    for name, phase in phases.by_name.items():
        rate, cpu = ("", "") if name == IDLE else (f"{rows / phase.seconds:,.0f}", f"{phase.cpu_s * 1e6 / rows:.2f}")
        waits = " | ".join(_shown(each) for each in (phase.waits, phase.confirms))
        lines.append(f"| {name} | {phase.seconds:.1f} | {rate} | {cpu} | {waits} |")
    busy_s = sum(phase.seconds for name, phase in phases.by_name.items() if name != IDLE)
    lines.append(f"| all | {busy_s:.1f} | {rows / busy_s:,.0f} | | | |")
    return "\n".join(lines)


def _shown(waits: list[float]) -> str:
    if not waits:
        return ""
    found = latency(waits)
    return f"{found.p50_ms:.2f} / {found.p99_ms:.2f} / {max(waits) * 1e3:.1f}"


def main() -> int:
    """Measure one write, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the batch (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=1000, help="size of each body (default: %(default)s)")
    parser.add_argument("--into", choices=KINDS, default="queue", help="kind of the target (default: %(default)s)")
    parser.add_argument("--cores", default="0,1", help="cores that Spark may use (default: %(default)s)")
    parser.add_argument("--direct", action="store_true", help="send prepared parts, without Spark")
    parser.add_argument("--directory", type=Path, help="where the data is, not on a tmpfs")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to this file, too")
    parser.add_argument("--write", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        if options.direct:
            write_directly(options.write, options.rows, options.bytes)
        else:
            write(options.write, options.rows, options.bytes, options.cores)
        return 0
    how = ["--cores", options.cores, *(["--direct"] if options.direct else [])]
    with (
        tempfile.TemporaryDirectory(prefix="gateway-sink-", dir=options.directory) as directory,
        launch_managed(Path(directory)) as broker,
    ):
        shown = table(measure(broker, options.rows, options.bytes, options.into, how), options.rows)
    print(shown)
    if options.output is not None:
        options.output.write_text(shown + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
