"""Settings of the HTTP API and of the web pages that may use it."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Hosts, ListenerPort, Live, Origins, Size
from gateway.config.section import Section


class Management(Section):
    """The HTTP API, used by RabbitMQ's tools and ``gatewayctl``."""

    port: ListenerPort = 15672
    """Port of the HTTP listener."""

    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 500
    """Maximum number of connections; a new one replaces the one that has been idle for longest."""

    max_header_size: Annotated[Size, Field(ge=1024, le=2**20)] = 16 * 2**10
    """Maximum size of a request's head: the request line and the headers, of which at most 100 are allowed."""

    max_body_size: Annotated[Size, Field(ge=2**20, le=2**30)] = 64 * 2**20
    """Maximum size of a request's body, such as a file of definitions. Most requests are limited to 256 KiB."""

    max_bodies_size: Annotated[Size, Field(ge=2**20, le=2**34)] = 128 * 2**20
    """Memory for the bodies of all requests together; a request that finds no room gets 503."""

    min_body_rate: Annotated[Size, Field(ge=1, le=2**30)] = 1024
    """Minimum transfer rate of a body, in bytes a second, measured over five seconds."""

    header_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """Time a client has to send the head of a request, in seconds."""

    idle_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 60
    """Time a connection may wait for its next request, in seconds."""

    stall_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 60
    """Time a client may go without reading while a response is being sent, in seconds."""

    session_timeout_s: Annotated[int, Field(ge=60, le=30 * 86400)] = 8 * 3600
    """Time after which a login of the web UI ends, in seconds."""

    show_secrets: Live[bool] = False
    """Whether parameters and exports have the passwords in URIs, as in RabbitMQ. See docs/management.md."""

    cors_allow_origins: Origins = Field(default_factory=list)
    """Origins of web pages that may use the API, such as ``https://console.example.com``; ``*`` is any."""

    cors_max_age_s: Annotated[int, Field(ge=0, le=86400)] = 1800
    """Time for which a browser caches the answer to a CORS preflight request, in seconds."""

    allow_hosts: Hosts = Field(default_factory=list)
    """Further host names, without ports, that requests may use for this host; ``*`` is any. See docs/management.md."""


class ManagementTls(Section):
    """The HTTP API over TLS."""

    port: ListenerPort = None
    """Port of the TLS listener; the default is 15671 if ``tls.certificate`` is set."""
