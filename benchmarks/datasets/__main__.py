"""Publish real data by three protocols, and kill each process of the pipeline meanwhile; compare every row.

python -m benchmarks.datasets [--rows 50000] [--kills 12]

A broker with an archive, a standalone Spark cluster with two workers, and a driver run on this machine. Killed are, in
turns, with SIGKILL, each after a further batch: an executor alone, the broker, its worker for columns, the driver with
its Java.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pandas
import pyarrow.parquet as pq

import gateway_arrow
from benchmarks.datasets.data import DATASETS, lines
from benchmarks.datasets.publishing import publish
from gateway.cli.local_cluster.ports import HOST, chosen
from gateway.cli.local_cluster.processes import ChildProcess
from gateway_spark.archive import days
from gateway_spark.manifest import files_in

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "pipeline" / "examples"))
from cluster import spark_cluster  # noqa: E402 - a program, not a package
from weather import call  # noqa: E402

PORTS: Final = {"amqp": 5691, "mqtt": 1896, "stomp": 61631, "management": 15691}
TIMEOUT_S: Final = 300.0

#: A batch takes less, also after the start of a driver.
BATCH_S: Final = 120.0

#: Messages of a batch of a publisher.
AT_ONCE: Final = 1000


class Rig:
    """The processes, and the directory that all of them use."""

    def __init__(self, directory: Path, master: str) -> None:
        self.directory = directory
        self.ports = chosen(PORTS, 0, set())
        self.url = f"http://{HOST}:{self.ports['management']}"
        self._master = master
        listeners = [f"{name}.port={port}" for name, port in self.ports.items()]
        off = [f"{name}.port=off" for name in ("web_mqtt", "web_stomp", "prometheus")]
        settings = ["bind=127.0.0.1", "archive.segment_age_s=1", *listeners, *off]
        options = [word for setting in settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data"), *options]
        self.broker = ChildProcess("broker", command, directory / "broker.log")
        self.driver = self._driver("no")
        self.killed: Counter[str] = Counter()

    def __enter__(self) -> "Rig":
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes."""
        if self.driver.is_running:
            self.end_driver()
        self.broker.ask_to_stop()
        self.broker.wait()

    def _driver(self, to_the_end: str) -> ChildProcess:
        words = [self.url, self._master, str(self.directory), to_the_end, *DATASETS]
        path = os.pathsep.join((str(ROOT / "pipeline"), str(ROOT)))
        command = [sys.executable, "-m", "benchmarks.datasets.queries", *words]
        return ChildProcess("driver", command, self.directory / f"driver-{to_the_end}.log", {"PYTHONPATH": path})

    def is_ready(self) -> bool:
        """Whether the management API answers."""
        with suppress(OSError):
            call(f"{HOST}:{self.ports['management']}", "vhosts/%2F", {})
            return True
        return False

    def prepare(self, names: Iterable[str]) -> None:
        """Declare a stream and a stream of copies for each data set, and archive the exchange."""
        management = f"{HOST}:{self.ports['management']}"
        archived = {"pattern": r"^amq\.topic$", "apply-to": "exchanges", "definition": {"archive": True}}
        call(management, "policies/%2F/keep", archived)
        for name in names:
            for stream in (name, f"{name}.copy"):
                call(management, f"queues/%2F/{stream}", {"durable": True, "arguments": {"x-queue-type": "stream"}})
            call(management, f"bindings/%2F/e/amq.topic/q/{name}", {"routing_key": name}, "POST")

    def kill_executor(self) -> bool:
        """Kill one executor alone. Return whether there was one."""
        return self._kill("executor", self._executors)

    def has_executors(self) -> bool:
        """Whether the driver has one."""
        return bool(self._executors)

    @property
    def _executors(self) -> list[int]:
        own = [(pid, line, where) for pid, line, where in processes() if where.startswith(str(self.directory))]
        return [pid for pid, line, where in own if "/app-" in where and "Executor" in line]

    def kill_worker(self) -> bool:
        """Kill the broker's worker for columns."""
        workers = [pid for pid, line, _ in processes() if "gateway.columnar.encoding.worker" in line]
        return self._kill("worker", [pid for pid in workers if parent_of(pid) == self.broker.pid])

    def kill_broker(self) -> bool:
        """Kill the broker, and start it again."""
        os.kill(self.broker.pid, signal.SIGKILL)
        self.broker.wait()
        self.broker.start()
        self.killed["broker"] += 1
        return True

    def kill_driver(self) -> bool:
        """Kill the driver with its Java, and start it again."""
        self.end_driver()
        self.driver.start()
        self.killed["driver"] += 1
        return True

    def end_driver(self) -> None:
        """Kill the driver with its Java, and wait for its end."""
        with suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait()

    def keep_driver(self) -> None:
        """Start the driver again if a query has failed."""
        if not self.driver.is_running:
            self.end_driver()
            self.driver.start()
            self.killed["driver ended by itself, and was started again"] += 1

    def wait_for_a_batch(self) -> bool:
        """Wait until a query has completed one more batch: the next one begins at once.

        Return whether it has; if not, the queries have read everything.
        """
        before, deadline_s = self.batches, time.monotonic() + BATCH_S
        while self.batches == before and time.monotonic() < deadline_s:
            self.keep_driver()
            time.sleep(0.2)
        return self.batches > before

    @property
    def batches(self) -> int:
        """The number of batches that all queries have completed."""
        return sum(name.name.isdigit() for name in self.directory.glob("*/checkpoint-*/commits/*"))

    def run_to_the_end(self) -> None:
        """Let the queries read what is there; they may fail while something recovers."""
        for _ in range(5):
            last = self._driver("yes")
            last.start()
            self.driver = last
            until(lambda driver=last: not driver.is_running, "the queries do not end")  # type: ignore[misc]
            if "Traceback" not in last.log.read_text(errors="replace"):
                return
        raise SystemExit(f"the queries fail; see {last.log}")

    def _kill(self, name: str, pids: list[int]) -> bool:
        for pid in pids[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed[name] += 1
        return bool(pids)


def processes() -> Iterator[tuple[int, str, str]]:
    """Yield number, command line and working directory of each process."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield int(place.name), line, str((place / "cwd").readlink())


def parent_of(pid: int) -> int:
    """Return the number of the parent of a process; 0 if it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def until(is_done: Callable[[], bool], what: str) -> None:
    """Wait for a condition. :raises SystemExit: with ``what`` after a time limit."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_done():
        if time.monotonic() > deadline_s:
            raise SystemExit(what)
        time.sleep(0.2)


# The comparison


def bodies_in(rig: Rig, stream: str) -> list[bytes]:
    """Return the bodies of a stream, in its order."""
    return list(gateway_arrow.read(rig.url, stream, columns=["body"]).read_all()["body"].to_pylist())


def committed(place: Path) -> list[str]:
    """Return the files of a query, as Spark reads them: those that a killed task has left are not in its log."""
    logs = (place / "_spark_metadata").glob("[0-9]*")
    entries = [json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]]
    return sorted({entry["path"].removeprefix("file://") for entry in entries})


def compare(rig: Rig, name: str, frame: Any, archived: Counter[bytes]) -> Iterator[str]:
    """Yield what is wrong with the results of a data set: nothing, if each is equal to pandas."""
    published = lines(frame)
    stream = bodies_in(rig, name)
    if set(stream) != set(published):
        yield f"{name}: the stream has other messages than were published"
    rows = pq.read_table(committed(rig.directory / name / "rows")).to_pandas().sort_values("offset")
    if rows["offset"].to_list() != list(range(len(stream))):
        yield f"{name}: the files of the query have {len(rows)} rows, not each of {len(stream)} messages once"
    if rows["body"].to_list() != stream:
        yield f"{name}: the files of the query have other bodies than the stream"
    if Counter(bodies_in(rig, f"{name}.copy")) != Counter(stream):
        yield f"{name}: the sink has published other messages than the stream has"
    if any(archived[body] != count for body, count in Counter(stream).items()):
        yield f"{name}: the archive has other messages than the stream"
    once = rows.drop_duplicates("body")["body"]
    found = pandas.read_json(BytesIO(b"\n".join(once)), lines=True).set_index("row").sort_index()
    expected = pandas.read_json(BytesIO(b"\n".join(published)), lines=True).set_index("row")
    if not found.equals(expected):
        yield f"{name}: the rows differ from those of pandas"
    counts = ", ".join(f"{count} by {protocol}" for protocol, count in rows["protocol"].value_counts().items())
    say(f"{name}: {len(published)} rows, {len(stream)} messages ({counts})")


def archived_in(rig: Rig, count: int) -> Counter[bytes]:
    """Return the bodies of the archive, once it has as many messages."""
    place = rig.directory / "data" / "archive"

    def files() -> list[Any]:
        return [file for day in days(place) for file in files_in(day)]

    until(lambda: sum(file.rows or 0 for file in files()) >= count, "the archive is not complete")
    return Counter(body for file in files() for body in pq.read_table(file.path, columns=["body"])["body"].to_pylist())


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)


def main() -> int:
    """Run it; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasets", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, help="rows of each data set (default: all)")
    parser.add_argument("--kills", type=int, default=12, help="kills, of the processes in turns (default: %(default)s)")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # ends the processes, too
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    frames = {name: load()[: options.rows] for name, load in DATASETS.items()}
    with tempfile.TemporaryDirectory(prefix="gateway-datasets-") as place:
        directory = Path(place)
        with spark_cluster(directory / "spark") as master, Rig(directory, master) as rig:
            wrong = list(run(rig, frames, options.kills))
    for each in wrong:
        say(f"WRONG: {each}")
    if not wrong:
        say("all rows are equal to those of pandas, and each message is once in files, copies and archive")
    return 1 if wrong else 0


def run(rig: Rig, frames: dict[str, Any], kills: int) -> Iterator[str]:
    """Publish, kill, and compare; yield what is wrong."""
    rig.broker.start()
    until(rig.is_ready, "the broker does not start; see broker.log")
    rig.prepare(frames)
    rig.driver.start()
    again: list[int] = []
    publishers = [
        threading.Thread(target=lambda n=name, f=frame: again.append(publish(HOST, rig.ports, n, lines(f), AT_ONCE)))
        for name, frame in frames.items()
    ]
    until(rig.has_executors, "no executor starts; see driver-no.log")
    for each in publishers:
        each.start()
    wanted = [rig.kill_executor, rig.kill_broker, rig.kill_worker, rig.kill_driver]
    for number in range(kills):
        if not rig.wait_for_a_batch():
            break
        kill = wanted[number % len(wanted)]
        until(kill, f"{kill.__name__}: there is no such process")
    for each in publishers:
        each.join()
    rig.end_driver()
    rig.run_to_the_end()
    say("killed: " + ", ".join(f"{count} x {name}" for name, count in sorted(rig.killed.items())))
    say(f"published again, because no answer had come: {sum(again)}")
    archived = archived_in(rig, sum(len(bodies_in(rig, name)) for name in frames))
    for name, frame in frames.items():
        yield from compare(rig, name, frame, archived)


if __name__ == "__main__":
    sys.exit(main())
