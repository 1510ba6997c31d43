"""A cluster of three gateways on three NATS servers beside three RabbitMQ nodes with quorum queues, on one machine.

    python -m benchmarks.load.clusters [--seconds 3] [--rounds 5] [--only "across nodes"] [--output FILE]

Persistent messages of 1 KiB, with confirms and acknowledgements, to one queue, through a node that leads it; and
transient messages without either, from a publisher on that node to consumers on the others. The two clusters take turns
in each round. CPU is that of all brokers and NATS servers of a cluster. The NATS servers share the processors, as
those of ``make cluster`` do.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.load import rabbitmq
from benchmarks.load.amqp.client import amqp_product, connected
from benchmarks.load.fan_out import measure_fan_out
from benchmarks.load.gateway import MANAGEMENT, command
from benchmarks.load.measurement import Measurement
from benchmarks.load.processes import cpu_seconds, free_port, resident_bytes, stop, wait_for_port
from benchmarks.load.roundtrip import measure_confirm_round_trip
from benchmarks.load.running import Broker
from benchmarks.load.stream import measure_stream
from benchmarks.load.workloads import AMQP, FANOUT, Measure, QueueKind, Shape, Workload
from gateway.cli.local_cluster.servers import share_of_processors

NODES: Final = ("a", "b", "c")
QUORUM: Final = QueueKind("quorum", (("x-queue-type", "quorum"),))

WORKLOADS: Final = (
    Workload("window 1,000", 1024, 1000, 0, 1, confirms=True, persistent=True, queue=QUORUM),
    Workload("window 10,000", 1024, 10_000, 0, 1, confirms=True, persistent=True, queue=QUORUM),
    Workload(
        "one outstanding", 1024, 1, 0, confirms=True, persistent=True, measure=Measure.CONFIRM_ROUND_TRIP, queue=QUORUM
    ),
    Workload("fanout 1 to 10 across nodes, 100 B", 100, FANOUT, 0, shape=Shape.FANOUT),
    Workload("fanout 1 to 10 across nodes, 1 KiB", 1024, FANOUT, 0, shape=Shape.FANOUT),
)

_START_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: the AMQP ports, that of the node to measure first, and the processes of nodes and servers.

    ``management`` are the ports of the HTTP API, and ``gateways`` the processes of the nodes, both in the same order.
    """

    name: str
    ports: Sequence[int]
    pids: Sequence[int]
    management: Sequence[int] = ()
    gateways: Sequence[int] = ()

    def measure(self, workload: Workload, seconds: float) -> "Result":
        """Run a workload once."""
        broker = Broker(self.name, self.name, {AMQP: self.ports[0]}, os.getpid())
        cpu_s = self._cpu_seconds()
        if workload.shape is Shape.FANOUT:
            found = measure_fan_out(broker, self.ports, workload, seconds)
        elif workload.measure is Measure.STREAM:
            found = measure_stream(broker, workload, seconds)
        else:
            found = measure_confirm_round_trip(broker, workload, seconds)
        # the warm-up of a stream counts in the messages of neither, and is a sixth of the time of both
        share = 5 / 6 if workload.measure is Measure.STREAM else 1.0
        return Result(found, (self._cpu_seconds() - cpu_s) * share)

    def _cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def resident_mib(self) -> float:
        """Return the memory of all processes."""
        return sum(map(resident_bytes, self.pids)) / 2**20


@dataclass(frozen=True, slots=True)
class Result:
    """One run, with the CPU time of all processes of the cluster."""

    run: Measurement
    cpu_s: float

    @property
    def cpu_us(self) -> float:
        """CPU microseconds of the cluster per message."""
        return self.cpu_s * 1e6 / self.run.messages


@contextmanager
def gateways(directory: Path) -> Iterator[Cluster]:
    """Run three NATS servers and three gateways."""
    with ExitStack() as stack:
        servers = _nats_servers(stack, directory)
        urls = [f"nats://127.0.0.1:{ports['client']}" for ports, _ in servers]
        monitoring = [f"http://127.0.0.1:{ports['http']}" for ports, _ in servers]
        nodes = []
        management = {}
        for name in NODES:
            listening = {AMQP: free_port(), MANAGEMENT: free_port()}
            options = []
            for setting in (
                f"node_name={name}",
                f"cluster.servers={_listed(urls)}",
                f"cluster.monitoring={_listed(monitoring)}",
                "cluster.host=127.0.0.1",
                f"cluster.port={free_port()}",
            ):
                options += ["--set", setting]
            home = directory / name
            home.mkdir()
            nodes.append((listening[AMQP], _started(stack, command(home, listening, options), home / "output.log")))
            management[listening[AMQP]] = listening[MANAGEMENT]
        leader = _leader(directory, nodes)
        nodes.sort(key=lambda node: node[0] != leader)
        ports = [port for port, _ in nodes]
        pids, gateway_pids = [process.pid for _, process in servers], [process.pid for _, process in nodes]
        yield Cluster("gateway", ports, pids + gateway_pids, [management[port] for port in ports], gateway_pids)


def _nats_servers(stack: ExitStack, directory: Path) -> list[tuple[Mapping[str, int], subprocess.Popen[bytes]]]:
    program = Path(sys.executable).with_name("nats-server")
    ports = [{kind: free_port() for kind in ("client", "http", "route")} for _ in NODES]
    routes = ", ".join(f"nats://127.0.0.1:{each['route']}" for each in ports)
    started = []
    for number, own in enumerate(ports, 1):
        file = directory / f"nats-{number}.conf"
        file.write_text(
            f"server_name: n{number}\nlisten: 127.0.0.1:{own['client']}\nhttp: 127.0.0.1:{own['http']}\n"
            f"jetstream {{ store_dir: {directory / f'nats-{number}'}, max_file: 20GB, sync_interval: always }}\n"
            f"cluster {{ name: bench, listen: 127.0.0.1:{own['route']}, routes: [{routes}] }}\n"
        )
        environment = {**os.environ, **share_of_processors()}
        process = _started(stack, [str(program), "-c", str(file)], directory / f"nats-{number}.log", environment)
        started.append((own, process))
    for own, process in started:
        wait_for_port(process, own["client"], directory / "nats-1.log", _START_S)
    time.sleep(5)  # the election of their leaders
    return started


def _leader(directory: Path, nodes: Sequence[tuple[int, subprocess.Popen[bytes]]]) -> int:
    """Return the AMQP port of the node that leads, once it does."""
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        for name, (port, _) in zip(NODES, nodes, strict=True):
            log = directory / name / "output.log"
            if log.exists() and "leading epoch" in log.read_text(errors="replace"):
                with connected(port):
                    return port
        time.sleep(0.1)
    raise TimeoutError("no gateway leads")


@contextmanager
def rabbitmqs(directory: Path) -> Iterator[Cluster]:
    """Run three RabbitMQ nodes, joined."""
    with ExitStack() as stack:
        home = directory / "rabbit"
        home.mkdir()
        environment = stack.enter_context(rabbitmq.port_mapper(home))
        nodes = []
        for name in NODES:
            own = home / name
            own.mkdir()
            (own / rabbitmq.PLUGINS).write_text("[].")
            (own / rabbitmq.CONFIGURATION).write_text("[].\n")
            port = free_port()
            settings = {**environment, **rabbitmq.node_environment(own, port), "RABBITMQ_NODENAME": f"{name}@localhost"}
            process = _started(stack, rabbitmq.COMMAND, own / "output.log", settings)
            nodes.append((port, process, settings))
        for port, process, _ in nodes:
            wait_for_port(process, port, home / "a" / "output.log", _START_S)
        for _, _, settings in nodes[1:]:
            for words in (["stop_app"], ["join_cluster", "a@localhost"], ["start_app"]):
                _control(settings, words)
        yield Cluster("RabbitMQ", [port for port, _, _ in nodes], [process.pid for _, process, _ in nodes])


def _control(environment: Mapping[str, str], words: Sequence[str]) -> None:
    script = rabbitmq.SERVER.with_name("rabbitmqctl")
    names = ["--node", environment["RABBITMQ_NODENAME"]]
    subprocess.run([str(script), *names, *words], env=dict(environment), check=True, capture_output=True, timeout=120)


def _started(
    stack: ExitStack, words: Sequence[str], output: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    with output.open("ab") as log:
        process = subprocess.Popen(
            words,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    stack.callback(stop, process)
    return process


def _listed(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def _table(
    workloads: Sequence[Workload], results: Mapping[str, Mapping[str, Sequence[Result]]], memory: Mapping[str, float]
) -> str:
    lines = [
        "| workload | | msg/s | CPU µs a message | confirm p50 | p99 |",
        "|---|---|---|---|---|---|",
    ]
    for workload in workloads:
        found = {name: each[workload.name] for name, each in results.items()}
        for name, runs in found.items():
            rate, cpu_us = median(r.run.rate for r in runs), median(r.cpu_us for r in runs)
            confirm = [f"{median(values):.2f} ms" for values in _confirms(runs)] if workload.confirms else ["", ""]
            lines.append(f"| {workload.name} | {name} | {rate:,.0f} | {cpu_us:.1f} | {' | '.join(confirm)} |")
        ours, theirs = found["gateway"], found["RabbitMQ"]
        pairs = list(zip(ours, theirs, strict=True))
        ratios = [
            f"{median(a.run.rate / b.run.rate for a, b in pairs):.2f}",
            f"{median(a.cpu_us / b.cpu_us for a, b in pairs):.2f}",
            *(_ratios(ours, theirs) if workload.confirms else ("", "")),
        ]
        lines.append(f"| | ratio | {' | '.join(ratios)} |")
    lines.append("")
    lines.append("Memory of all processes at the end: " + ", ".join(f"{n} {mib:,.0f} MiB" for n, mib in memory.items()))
    return "\n".join(lines)


def _confirms(runs: Sequence[Result]) -> tuple[list[float], list[float]]:
    """Return the p50 of the confirms of each run, and the p99."""
    confirms = [result.run.confirm for result in runs if result.run.confirm is not None]
    return [each.p50_ms for each in confirms], [each.p99_ms for each in confirms]


def _ratios(ours: Sequence[Result], theirs: Sequence[Result]) -> Iterator[str]:
    for mine, peers in zip(_confirms(ours), _confirms(theirs), strict=True):
        yield f"{median(a / b for a, b in zip(mine, peers, strict=True)):.2f}"


def main() -> int:
    """Measure both clusters in turns, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each workload (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads with this text in their name")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to this file, too")
    options = parser.parse_args()
    if (reason := rabbitmq.absence()) is not None:
        print(reason)
        return 1
    workloads = [workload for workload in WORKLOADS if options.only in workload.name]
    launches: tuple[Callable[[Path], object], ...] = (gateways, rabbitmqs)
    with tempfile.TemporaryDirectory(prefix="gateway-clusters-") as directory, ExitStack() as stack:
        clusters: list[Cluster] = [stack.enter_context(launch(Path(directory))) for launch in launches]  # type: ignore[arg-type]
        for cluster in clusters:
            print(f"{cluster.name}: {amqp_product({AMQP: cluster.ports[0]})}", flush=True)
        results: dict[str, dict[str, list[Result]]] = {each.name: {} for each in clusters}
        for number in range(options.rounds):
            for workload in workloads:
                for cluster in clusters:
                    found = cluster.measure(workload, options.seconds)
                    results[cluster.name].setdefault(workload.name, []).append(found)
                    print(f"{number + 1} {workload.name} {cluster.name}: {found.run.rate:,.0f}/s", flush=True)
        table = _table(workloads, results, {each.name: each.resident_mib() for each in clusters})
    print(table)
    if options.output is not None:
        options.output.write_text(table + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
