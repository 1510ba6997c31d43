"""The settings of what the data pipeline on Spark asks of the broker."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Size
from gateway.config.section import Section


class Pipeline(Section):
    """Reading streams into Spark, and publishing what comes from there, over the management port."""

    reads: Annotated[int, Field(ge=1, le=1000)] = 4
    """How many reads of streams are answered at a time; others wait."""

    batch_size: Annotated[Size, Field(ge=1024, le=2**30)] = 32 * 2**20
    """The most that one batch of the sink may have, in bytes; it is published at once, and others wait meanwhile."""

    staged_size: Annotated[Size, Field(ge=1024, le=2**34)] = 256 * 2**20
    """How much memory rows may take that tasks handed over and that are not yet published, in bytes."""

    staged_expiry_s: Annotated[int, Field(ge=1, le=604_800)] = 3600
    """How long such rows are kept after the last of them came, in seconds."""

    producer_expiry_s: Annotated[int, Field(ge=60, le=315_360_000)] = 30 * 86400
    """How long it is remembered which batch a query published last, in seconds; until then it is published once."""
