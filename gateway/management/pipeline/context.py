"""The context of the pipeline's endpoints, which lives as long as the broker."""

from dataclasses import dataclass

from gateway.kernel.streams.stream import Stream
from gateway.management.pipeline.job_results import JobResults
from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import SplitReader
from gateway.management.pipeline.staging import Staging


@dataclass(frozen=True, slots=True)
class PipelineContext:
    """Reader of streams, staged rows, progress of consumers, and runs of jobs.

    ``producer_memory_ms`` is the time for which a producer's last batch is remembered.
    """

    reading: SplitReader[Stream]
    staging: Staging
    progress: ProgressReports
    job_results: JobResults
    producer_memory_ms: int
