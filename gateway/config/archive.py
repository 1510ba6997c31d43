"""The settings of streams, and of what is kept for good."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.kinds import OptionalPath, Size
from gateway.config.section import Section


class Streams(Section):
    """Queues of the type ``stream``."""

    segment_size: Annotated[Size, Field(ge=64 * 2**10, le=3 * 10**9)] = 32 * 2**20
    """When a segment of a stream is complete, unless an argument or a policy says otherwise."""

    encode: Literal["read", "sealed"] = "read"
    """What is kept as columns, too: streams that the pipeline has ``read``, or every segment that is ``sealed``."""


class ArchiveSettings(Section):
    """What a policy with ``archive`` keeps for good, and the table of what happens to messages."""

    directory: OptionalPath = None
    """Where the tables ``archive`` and ``trace`` are; none is the data directory."""

    segment_size: Annotated[Size, Field(ge=64 * 2**10, le=2**30)] = 64 * 2**20
    """How much of an exchange or queue is gathered until it becomes a file."""

    segment_age_s: Annotated[int, Field(ge=1, le=86400)] = 300
    """For how long it is gathered at most, in seconds; a file always ends with its day, in UTC."""

    max_backlog: Annotated[Size, Field(ge=2**20, le=10**12)] = 512 * 2**20
    """How much of an exchange or queue may wait to become a file until those who publish there are held back."""
