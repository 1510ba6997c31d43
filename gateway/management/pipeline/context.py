"""The context of the pipeline's endpoints, which lives as long as the broker."""

from dataclasses import dataclass

from gateway.kernel.streams.stream import Stream
from gateway.management.pipeline.archive_files import ArchiveFiles
from gateway.management.pipeline.batch_runs import BatchRuns
from gateway.management.pipeline.job_results import JobResults
from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import SplitReader
from gateway.management.pipeline.staging import Staging


@dataclass(frozen=True, slots=True)
class PipelineContext:
    """Reader of streams, staged rows, batches in progress, progress of consumers, runs of jobs, and files of archives.

    ``producer_memory_ms`` is the time for which a producer's last batch is remembered. Batches of up to
    ``at_once_size`` bytes are published in one step of the store, larger ones in slices; with a ``batch_limit``, their
    maximum size, all are published in one step.
    """

    reading: SplitReader[Stream]
    staging: Staging
    runs: BatchRuns
    progress: ProgressReports
    job_results: JobResults
    archives: ArchiveFiles
    producer_memory_ms: int
    at_once_size: int
    batch_limit: int | None = None
