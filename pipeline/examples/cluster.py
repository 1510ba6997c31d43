"""A year of weather through three gateways and a standalone Spark cluster with two workers, all on this machine.

``make pipeline-cluster`` runs this. It publishes the readings of `weather` by MQTT, those of each station at another
node into a stream of its own. Two jobs read the streams from all nodes, and their sums are compared with what was
published. Ctrl-C ends all processes.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from argparse import ArgumentParser
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeAlias

from gateway.cli.local_cluster.nodes import NAMES, GatewayNodes
from gateway.cli.local_cluster.ports import HOST, chosen
from gateway.cli.local_cluster.processes import ChildProcess, until
from gateway.cli.local_cluster.servers import NatsServers
from gateway.kernel.errors import GatewayError
from gateway_spark.reports.page import ResultTables
from gateway_spark.submitting import spark_submit
from weather import LIGHT_JVM, ROLLUP, call, publish, weather

PIPELINE: Final = Path(__file__).parents[1]
TIMEOUT_S: Final = 120.0
END_S: Final = 20.0
WORKERS: Final = 2
SPARK_PORTS: Final = {"master": 7077, "page": 8080}

#: Megabytes of an executor's heap, the least that Spark takes, and of a worker.
EXECUTOR_MB, WORKER_MB = 512, 600

#: What a master keeps on disk of its applications and workers, and the beginning of the option with its place.
RECOVERY: Final = "-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory="

#: The options of the jobs that run.
JOBS: Final = {
    "rollup": ROLLUP,
    "presence": ("--by", "$.origin", "--time", "$.time_hour", "--session-gap", "2h"),
}

FIELDS: Final = ("temp", "wind_speed", "pressure")

#: The mean of a window times its count differs from the sum of its readings in the last digits only.
TOLERANCE: Final = 1e-6


def main() -> int:
    """Run the example; print the sums and the paths of the reports. Return 1 if the sums differ."""
    parser = ArgumentParser(description="Roll up a year of weather, from three brokers to two Spark workers.")
    parser.add_argument("--out", type=Path, help="directory for all files (default: a new temporary directory)")
    parser.add_argument("--readings", type=int, help="publish only the first ones (default: all, of a year)")
    parser.add_argument("--job", action="append", choices=JOBS, help="run only this job (repeat; default: all)")
    options = parser.parse_args()
    if options.readings is not None and options.readings < len(NAMES):
        parser.error(f"argument --readings: must be {len(NAMES)} or more: one for each node")
    directory = (options.out or Path(tempfile.mkdtemp(prefix="gateway-pipeline-"))).absolute()
    if (directory / "a").exists():
        raise SystemExit(f"{directory} has the data of an earlier run, which would be counted twice: choose another")
    directory.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    readings = list(weather())[: options.readings]
    with gateways(directory) as nodes, spark_cluster(directory / "spark") as spark:
        by_station = published(nodes, readings)
        urls = ",".join(f"http://{HOST}:{ports['management']}" for ports in nodes.ports.values())
        source = ["--urls", urls, *(word for station in by_station for word in ("--queue", stream_of(station)))]
        for job in options.job or JOBS:
            run(job, directory, spark.url, *JOBS[job], *source)
        used = {place.parents[2].name for place in (directory / "spark").glob("worker-*/app-*/*/stdout")}
        say(f"{len(used)} of {WORKERS} workers had executors; {reads(nodes)}")
    wrong = [
        *(each for job in options.job or JOBS for each in DIFFERENCES[job](by_station, ResultTables(directory / job))),
        *([] if len(used) == WORKERS else ["a worker had no executor"]),
    ]
    for each in wrong:
        say(f"WRONG: {each}")
    if not wrong:
        say(f"counts and sums of {len(readings)} readings are those that were published. The reports:")
    for job in options.job or JOBS:
        say(str(directory / job / "report.html"))
    return 1 if wrong else 0


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


# The processes


@contextmanager
def running(processes: Sequence[ChildProcess]) -> Iterator[None]:
    """End processes after the block, the last one first."""
    try:
        yield
    finally:
        with _signals_ignored():  # a second Ctrl-C must not leave processes behind
            for process in reversed(processes):
                process.ask_to_stop()
                process.wait()


@contextmanager
def _signals_ignored() -> Iterator[None]:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def gateways(directory: Path) -> Iterator[GatewayNodes]:
    """Run three NATS servers and three gateways within the block."""
    taken: set[int] = set()
    servers = NatsServers(directory, taken)
    nodes = GatewayNodes(directory, servers, taken, 1)
    with running([*servers.processes, *nodes.processes.values()]):
        say(f"{directory}: starting three NATS servers and three gateways")
        servers.start()
        say(f"node {nodes.start()} leads")
        yield nodes


@dataclass(frozen=True)
class SparkCluster:
    """A master and its workers; ``url`` is that of the master."""

    url: str
    master: ChildProcess
    workers: Sequence[ChildProcess]


@contextmanager
def spark_cluster(directory: Path) -> Iterator[SparkCluster]:
    """Run a master and two workers of Spark within the block. A master that is started again knows its applications."""
    directory.mkdir()
    ports = chosen(SPARK_PORTS, 0, set())
    url = f"spark://{HOST}:{ports['master']}"
    page = ["--host", HOST, "--webui-port"]
    master = _daemon("master", directory, *page, str(ports["page"]), "--port", str(ports["master"]))
    sizes = ["--cores", "1", "--memory", f"{WORKER_MB}m"]
    workers = [
        _daemon(
            "worker", directory, *page, "0", *sizes, "--work-dir", str(directory / f"worker-{number}"), url, at=number
        )
        for number in range(1, WORKERS + 1)
    ]
    with running([master, *workers]):
        say(f"starting a master and {WORKERS} workers of Spark")
        for process in (master, *workers):
            process.start()
        deadline_s = time.monotonic() + TIMEOUT_S
        while _alive_workers(ports["page"]) < WORKERS:
            if not until(deadline_s):
                raise SystemExit(f"the Spark cluster does not start; see {directory}/*.log")
        yield SparkCluster(url, master, workers)


def _daemon(kind: str, directory: Path, *words: str, at: int = 0) -> ChildProcess:
    name = f"{kind}-{at}" if at else kind
    place = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    environment = {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(directory / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": f"{LIGHT_JVM} {RECOVERY}{directory / 'recovery'}",
        "SPARK_NO_DAEMONIZE": "1",
        "PYTHONPATH": str(PIPELINE),
    }
    program = str(spark_submit().with_name("spark-class"))
    return ChildProcess(name, [program, place, *words], directory / f"{name}.log", environment)


def _alive_workers(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/json/", timeout=TIMEOUT_S) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0


def run(job: str, directory: Path, master: str, *words: str) -> None:
    """Run a job as a user would, with the driver in a process of its own."""
    settings = {
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.executor.extraJavaOptions": LIGHT_JVM,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={PIPELINE}/gateway_spark/log4j2.properties",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
    }
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "gateway", "pipeline", "run", job, "--master", master, *conf, *words]
    environment = {"SPARK_SUBMIT_OPTS": LIGHT_JVM, "SPARK_LOCAL_IP": HOST} | os.environ
    driver = subprocess.Popen([*command, "--out", str(directory / job)], env=environment, start_new_session=True)
    try:
        code = driver.wait()
    finally:  # with its Java, and the process that "gateway pipeline" starts
        with _signals_ignored():
            end_group(driver)
    if code:
        raise SystemExit(f"the job {job} has failed; see {directory}/spark/*.log")


def end_group(leader: "subprocess.Popen[bytes]") -> None:
    """End the processes of a group, and wait for its leader: they are killed if it has not ended in ``END_S``."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(leader.pid, number)
        with suppress(subprocess.TimeoutExpired):
            leader.wait(END_S)
            return


# The messages

#: The readings of each station.
Published: TypeAlias = Mapping[str, list[dict[str, Any]]]


def stream_of(station: str) -> str:
    """Return the name of the stream of a station."""
    return f"weather.{station}"


def published(nodes: GatewayNodes, readings: Sequence[tuple[str, bytes]]) -> Published:
    """Declare a stream for each station, and publish its readings at another node; return them by station."""
    by_station: dict[str, list[bytes]] = {}
    for station, body in readings:
        by_station.setdefault(station, []).append(body)
    for (station, bodies), name in zip(by_station.items(), NAMES, strict=True):
        stream, ports = stream_of(station), nodes.ports[name]
        management = f"{HOST}:{ports['management']}"
        call(management, f"queues/%2F/{stream}", {"durable": True, "arguments": {"x-queue-type": "stream"}})
        call(management, f"bindings/%2F/e/amq.topic/q/{stream}", {"routing_key": stream}, "POST")
        begun = time.monotonic()
        publish(f"{HOST}:{ports['mqtt']}", [(station, body) for body in bodies])
        say(f"{len(bodies)} readings of {station} published by MQTT at node {name} in {time.monotonic() - begun:.1f} s")
    return {station: [json.loads(body) for body in bodies] for station, bodies in by_station.items()}


def reads(nodes: GatewayNodes) -> str:
    """Return in words how many messages the nodes have sent from their copies."""
    request = urllib.request.Request(f"http://{HOST}:{nodes.ports[NAMES[0]]['management']}/api/cluster")
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        members = json.load(answer)["members"]
    return "messages read from copies: " + ", ".join(
        f"{each['copy_reads']['messages']} at {each['name']}" for each in members
    )


def wrong_sums(by_station: Published, tables: ResultTables) -> Iterator[str]:
    """Yield how counts and sums of windows differ from those of the published readings."""
    windows = tables["windows"]
    windows["sum"] = windows["avg"] * windows["count"]
    for station, readings in by_station.items():
        for field in FIELDS:
            values = [each[field] for each in readings if each[field] is not None]
            own = windows[(windows["origin"] == station) & (windows["field"] == field)]
            count, total = own["count"].sum(), own["sum"].sum()
            if count != len(values) or abs(total - sum(values)) > TOLERANCE * max(1.0, sum(values)):
                yield f"{station} {field}: {count} with the sum {total}, not {len(values)} with {sum(values)}"


def wrong_devices(by_station: Published, tables: ResultTables) -> Iterator[str]:
    """Yield how the number of messages of a station differs from that of the published readings."""
    found = tables["devices"].set_index("origin")["messages"].to_dict()
    expected = {station: len(readings) for station, readings in by_station.items()}
    if found != expected:
        yield f"presence has {found} messages, not {expected}"


DIFFERENCES: Final = {"rollup": wrong_sums, "presence": wrong_devices}


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GatewayError as error:
        sys.exit(str(error))
