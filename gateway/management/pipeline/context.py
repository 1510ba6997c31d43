"""What the pipeline's endpoints share for as long as the broker runs."""

from dataclasses import dataclass

from gateway.management.pipeline.progress import ProgressReports
from gateway.management.pipeline.reading import StreamReader
from gateway.management.pipeline.staging import Staging


@dataclass(frozen=True, slots=True)
class PipelineContext:
    """Reads under way, what is staged, and how far consumers are.

    ``producer_memory_ms`` is how long a producer's last batch is known after it was published.
    """

    reading: StreamReader
    staging: Staging
    progress: ProgressReports
    producer_memory_ms: int
