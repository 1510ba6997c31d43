"""Settings of the record of the depths of queues."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Allowed, Size
from gateway.config.section import Section


class DepthSettings(Section):
    """The record of how many messages each queue had at past moments, see docs/sql.md."""

    interval_s: Annotated[int, Field(ge=0, le=3600, multiple_of=5), Allowed("a multiple of 5")] = 0
    """Time between two samples that are recorded, in seconds; 0 records nothing. 10 suits most brokers."""

    max_age_s: Annotated[int, Field(ge=3600, le=10**10)] = 30 * 86400
    """Age at which samples are removed, in seconds; up to a day later."""

    max_size: Annotated[Size, Field(ge=2**20, le=10**13)] = 2**30
    """Size of all files of samples; the oldest are removed for later ones. One may take four full samples."""
