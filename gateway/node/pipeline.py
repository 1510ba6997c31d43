"""The pipeline part of a node: the context shared by the endpoints for Spark."""

from functools import partial
from secrets import token_bytes
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from gateway.archive.targets import archive_place
from gateway.config import Settings
from gateway.kernel.clock import PAUSE_S
from gateway.management.http.site import TaskSteps
from gateway.management.pipeline.archive_files import ArchiveFiles
from gateway.management.pipeline.awaiting import Steps
from gateway.management.pipeline.batch_runs import BatchRuns
from gateway.management.pipeline.context import PipelineContext
from gateway.management.pipeline.job_results import JobResults
from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import SplitReader
from gateway.management.pipeline.staged_files import StagedFiles
from gateway.management.pipeline.staging import Staging
from gateway.management.pipeline.staging_threads import DiskThreads
from gateway.node.parts import NodeParts

#: The directory of staged rows below the data directory.
_STAGED: Final = "staged"

#: Size of a batch that is published in one step of the store: the disk writes it in a few milliseconds.
AT_ONCE: Final = 1024 * 1024


def pipeline_context(settings: Settings, parts: NodeParts) -> PipelineContext:
    """Return the reader of streams, the staged rows, and the batches in progress, which continue from now on."""
    pipeline, broker, reactor = settings.pipeline, parts.broker, parts.reactor
    files = StagedFiles(settings.data / _STAGED, lambda: parts.watermarks.disk_free_limit)
    threads = DiskThreads(reactor.callFromThread)
    staging = Staging(broker.clock, files, threads, pipeline.staged_size, pipeline.staged_expiry_s)
    replaced = staging.restore()
    memory_ms = pipeline.producer_expiry_s * 1000
    later = partial(deferLater, reactor)

    def pause() -> "Deferred[None]":
        return later(PAUSE_S if broker.journal.delays_long_work() else 0)

    def run(steps: "Steps[None]") -> "Deferred[Any]":
        return parts.slices.coiterate(iter(TaskSteps(steps, parts.turn.touch, pause)))

    runs = BatchRuns(broker, staging, run, later, memory_ms)
    runs.resume(replaced)
    return PipelineContext(
        SplitReader(parts.worker, parts.archive, pipeline.reads),
        staging,
        runs,
        ProgressReports(),
        JobResults(pipeline.results_dir),
        ArchiveFiles(parts.worker, archive_place(settings), token_bytes(32)),
        memory_ms,
        at_once_size=AT_ONCE,
        batch_limit=None if parts.host.cluster_control is None else pipeline.batch_size,
    )
