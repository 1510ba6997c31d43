"""The jobs there are, without importing any: what a list shows must not need Spark."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from gateway_spark.jobs.job import Job


class JobEntry(NamedTuple):
    """A job, its module and what it is good for."""

    name: str
    module: str
    summary: str

    def load(self) -> "Job":
        """Import the job, and Spark with it."""
        job: Job = import_module(self.module).JOB
        return job

    @property
    def file(self) -> Path:
        """The file that spark-submit takes."""
        return Path(__file__).parent / "jobs" / f"{self.module.rpartition('.')[2]}.py"


def _entry(name: str, summary: str) -> JobEntry:
    return JobEntry(name, f"gateway_spark.jobs.{name.replace('-', '_')}", summary)


#: In the order of a list, which is also that of their use.
ENTRIES: Final = (
    _entry("rollup", "readings by device and window of time: count, least, greatest, mean, percentiles"),
    _entry("replay", "publish stored messages once more, each once, with a note of where they come from"),
    _entry("dead-letters", "where messages died and why, the ways they took, loops, samples"),
    _entry("latency", "from publish to deliver to settle, by queue and protocol, from the trace"),
    _entry("presence", "sessions of devices, and who fell silent for longer than is usual for it"),
    _entry("compact", "merge the small files of an archive, drop torn ones and days that are over"),
    _entry("anomaly", "readings that stand out from what is usual at that hour of the week"),
)

BY_NAME: Final = {entry.name: entry for entry in ENTRIES}
