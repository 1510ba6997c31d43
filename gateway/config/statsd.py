"""Settings of metrics that are sent to a StatsD server."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section


class Statsd(Section):
    """Metrics sent to a StatsD server by UDP, with tags in DogStatsD's form; off without a ``host``."""

    host: str = ""
    """IP address of the server; ``""`` sends nothing."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8125
    """Port of the server."""

    interval_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """Time between two sends, in seconds."""
