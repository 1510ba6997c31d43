"""The list of jobs. No job is imported, so that the list does not need Spark."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from gateway_spark.jobs.job import Job


class JobEntry(NamedTuple):
    """A job, its module and a summary."""

    name: str
    module: str
    summary: str

    def load(self) -> "Job":
        """Import the job, and Spark with it."""
        job: Job = import_module(self.module).JOB
        return job

    @property
    def file(self) -> Path:
        """The file for spark-submit."""
        return Path(__file__).parent / "jobs" / f"{self.module.rpartition('.')[2]}.py"


def _entry(name: str, summary: str) -> JobEntry:
    return JobEntry(name, f"gateway_spark.jobs.{name.replace('-', '_')}", summary)


#: In the order of the list, which is the usual order of use.
ENTRIES: Final = (
    _entry("rollup", "readings by device and time window: count, minimum, maximum, mean, percentiles"),
    _entry("replay", "publish stored messages again, exactly once, with a header that names their origin"),
    _entry("dead-letters", "where and why messages were dead-lettered, their paths, loops, samples"),
    _entry("latency", "times from publish to delivery to settlement, by queue and protocol, from the trace"),
    _entry("presence", "sessions of devices, and devices that are silent for unusually long"),
    _entry("compact", "merge the small files of an archive, delete torn files and expired days"),
    _entry("anomaly", "readings that differ from the usual value at that hour of the week"),
)

BY_NAME: Final = {entry.name: entry for entry in ENTRIES}
