"""Settings of the interface between the broker and the data pipeline on Spark."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from gateway.config.kinds import OptionalPath, Size
from gateway.config.section import Section


class Pipeline(Section):
    """Reading streams from Spark and publishing results of Spark, over the management port."""

    reads: Annotated[int, Field(ge=1, le=1000)] = 4
    """Maximum number of concurrent reads of streams; further ones wait."""

    batch_size: Annotated[Size, Field(ge=1024, le=2**30)] = 32 * 2**20
    """In a cluster, maximum size of one batch of the sink; a node without a cluster publishes batches of any size."""

    staged_size: Annotated[Size, Field(ge=1024, le=2**44)] = 64 * 2**30
    """Disk space for rows that Spark tasks have sent and that are not yet published."""

    staged_expiry_s: Annotated[int, Field(ge=1, le=604_800)] = 3600
    """Time after the last row until unpublished rows are dropped, in seconds."""

    producer_expiry_s: Annotated[int, Field(ge=60, le=315_360_000)] = 30 * 86400
    """Time for which the last batch of a query is remembered, in seconds; until then no batch is published twice."""

    results_dir: OptionalPath = Path("pipeline")
    """Directory in which jobs write their results (their option `--out`), whose reports the web UI lists."""
