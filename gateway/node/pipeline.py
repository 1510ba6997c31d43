"""The pipeline part of a node: the context shared by the endpoints for Spark."""

from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.kernel.streams.stream import Stream
from gateway.management.pipeline.context import PipelineContext
from gateway.management.pipeline.job_results import JobResults
from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import EncodingWorker, SegmentEncoder, SplitReader
from gateway.management.pipeline.staging import Staging


def pipeline_context(
    settings: Settings, clock: Clock, worker: EncodingWorker, encoder: SegmentEncoder[Stream]
) -> PipelineContext:
    """Return the readers of streams, which use ``worker`` and ``encoder``, and the staged rows that are not yet
    published.
    """
    pipeline = settings.pipeline
    return PipelineContext(
        SplitReader(worker, encoder, pipeline.reads),
        Staging(clock, pipeline.staged_size, pipeline.batch_size, pipeline.staged_expiry_s),
        ProgressReports(),
        JobResults(pipeline.results_dir),
        pipeline.producer_expiry_s * 1000,
    )
