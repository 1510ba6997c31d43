"""One Spark session for all tests of the pipeline: starting one takes longer than most of them together."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyspark
import pytest
from pyspark.sql import SparkSession

from gateway_spark.session import session
from tests.pipeline.fake_broker import FakeBroker, fake_broker
from tests.pipeline.java import use_options

PIPELINE: Final = Path(__file__).parents[2] / "pipeline"

#: The first job of a session compiles code and starts workers, which takes more than a minute on a busy machine.
TEST_TIMEOUT_S: Final = 300

#: The package of Spark's checkpoints, which 4.1 has moved.
CHECKPOINTS: Final = "org.apache.spark.sql.execution.streaming" + (
    "" if pyspark.__version__.startswith("4.0.") else ".checkpointing"
)

#: Without Hadoop's native library a JVM starts ``readlink`` or ``chmod`` for each file of a checkpoint: some hundred
#: processes for a query. These classes need no ``readlink``, and have no file of checksums beside each file. The
#: queries that tests kill or submit as programs of their own have Spark's defaults.
LOCAL_FILES: Final[Mapping[str, str]] = {
    "spark.sql.streaming.checkpointFileManagerClass": f"{CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

use_options()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set a timeout for every test of this directory."""
    for item in items:
        if "pipeline" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session, with two local threads. Its JVM and its workers end with the tests."""
    scratch = tmp_path_factory.mktemp("spark")
    # The workers inherit the environment of the JVM, whose path must include the package.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PIPELINE), os.environ.get("PYTHONPATH"))))
    settings = {
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **LOCAL_FILES,
    }
    started = session("tests", "local[2]", settings)
    jvm = started.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    yield started
    groups = process_groups_below(jvm)
    started.stop()
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


@pytest.fixture(scope="module")
def running_fake() -> Iterator[FakeBroker]:
    """A broker that only answers requests of sources and sinks; a test that changes it resets it."""
    with fake_broker() as broker:
        yield broker


@pytest.fixture
def broker(running_fake: FakeBroker) -> FakeBroker:
    """A broker with ``orders``, messages 5 to 104, without faults."""
    running_fake.reset()
    running_fake.declare("orders", 5, 105)
    return running_fake


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """A directory for the checkpoint of a streaming query."""
    return str(tmp_path / "checkpoint")


def process_groups_below(ancestor: int) -> set[int]:
    """Return the process groups of a process's descendants, except our own: Spark's workers have separate ones."""
    parents = {pid: parent for pid, parent, _ in _processes()}
    groups = {pid: group for pid, _, group in _processes()}

    def descends(pid: int) -> bool:
        while pid in parents and pid != ancestor:
            pid = parents[pid]
        return pid == ancestor

    return {group for pid, group in groups.items() if pid != ancestor and descends(pid)} - {os.getpgid(0)}


def _processes() -> Iterator[tuple[int, int, int]]:
    """Yield process, parent and process group of every process."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = status.read_text().rpartition(")")[2].split()
            yield int(status.parent.name), int(words[1]), int(words[2])
