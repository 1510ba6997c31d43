"""The processes of the benchmarks that kill them: a broker, a standalone Spark cluster, and a driver."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from benchmarks.datasets.data import DATASETS
from gateway.cli.local_cluster.ports import HOST, chosen
from gateway.cli.local_cluster.processes import ChildProcess

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "pipeline" / "examples"))
from cluster import WORKERS, SparkCluster, spark_cluster  # noqa: E402 - a program, not a package
from weather import call  # noqa: E402

__all__ = ["HOST", "ROOT", "Rig", "SparkCluster", "call", "say", "spark_cluster", "until"]

PORTS: Final = {"amqp": 5691, "mqtt": 1896, "stomp": 61631, "management": 15691}
TIMEOUT_S: Final = 300.0

#: A batch takes less, also after the start of a driver.
BATCH_S: Final = 120.0


class Rig:
    """The processes, and the directory that all of them use."""

    def __init__(self, directory: Path, spark: SparkCluster) -> None:
        self.directory = directory
        self.ports = chosen(PORTS, 0, set())
        self.url = f"http://{HOST}:{self.ports['management']}"
        self._spark = spark
        listeners = [f"{name}.port={port}" for name, port in self.ports.items()]
        off = [f"{name}.port=off" for name in ("web_mqtt", "web_stomp", "prometheus")]
        settings = ["bind=127.0.0.1", "archive.segment_age_s=1", *listeners, *off]
        options = [word for setting in settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "gateway", "run", "--data", str(directory / "data"), *options]
        self.broker = ChildProcess("broker", command, directory / "broker.log")
        self.driver = self._driver("no")
        self.killed: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes."""
        if self.driver.is_running:
            self.end_driver()
        self.broker.ask_to_stop()
        self.broker.wait()

    def _driver(self, to_the_end: str) -> ChildProcess:
        words = [self.url, self._spark.url, str(self.directory), to_the_end, *DATASETS]
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
        return [pid for pid, line, where in self._own_processes() if "/app-" in where and "Executor" in line]

    def _own_processes(self) -> Iterator[tuple[int, str, str]]:
        """Yield the processes that work in the directory, as ``processes`` does."""
        return (each for each in processes() if each[2].startswith(str(self.directory)))

    def kill_worker(self) -> bool:
        """Kill the broker's worker for columns."""
        workers = [pid for pid, line, _ in processes() if "gateway.columnar.encoding.worker" in line]
        return self._kill("worker", [pid for pid in workers if parent_of(pid) == self.broker.pid])

    def kill_broker(self) -> bool:
        """Kill the broker, and start it again."""
        return self._restart("broker", self.broker)

    def kill_spark_worker(self) -> bool:
        """Kill a worker of Spark, whose executors end with it, and start it again."""
        return self._restart("worker of Spark", self._spark.workers[self.killed["worker of Spark"] % WORKERS])

    def kill_spark_master(self) -> bool:
        """Kill the master of Spark, and start it again."""
        return self._restart("master of Spark", self._spark.master)

    def kill_python(self) -> bool:
        """Kill a process of an executor that runs the tasks in Python, with those that it has started."""
        pids = [pid for pid, line, _ in self._own_processes() if "pyspark.daemon" in line]
        return self._kill("Python of an executor", pids)

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

    def _restart(self, name: str, process: ChildProcess) -> bool:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.start()
        self.killed[name] += 1
        return True

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


def say(text: str) -> None:
    """Print a line at once."""
    print(text, flush=True)
