"""Settings of metrics that are sent to a collector of OpenTelemetry."""

from typing import Annotated

from pydantic import Field, SecretStr

from gateway.config.kinds import Allowed, Password
from gateway.config.section import Section


class Otlp(Section):
    """Metrics sent to a collector of OpenTelemetry by OTLP over HTTP; off without an ``endpoint``."""

    endpoint: Annotated[
        str,
        Field(pattern=r"^(https?://[^\s/?#]+(/\S*)?)?$", max_length=2000),
        Allowed('a URL such as "http://localhost:4318/v1/metrics", or ""'),
    ] = ""
    """URL of the collector; one without a path gets ``/v1/metrics``. ``""`` sends nothing."""

    headers: Password = SecretStr("")
    """Headers of the requests, for instance of a login: ``name=value,name=value``, values encoded as in URLs."""

    interval_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """Time between two sends, in seconds."""

    service_name: Annotated[str, Field(min_length=1, max_length=200), Allowed("1 to 200 characters")] = "gateway"
    """Name of the service in the resource of the metrics."""
