"""The settings of the HTTP API, and of the pages that may use it."""

from typing import Annotated

from pydantic import Field

from gateway.config.kinds import Hosts, ListenerPort, Origins, Size
from gateway.config.section import Section


class Management(Section):
    """The HTTP API, which RabbitMQ's tools and ``gatewayctl`` use."""

    port: ListenerPort = 15672
    """Where HTTP requests are taken."""

    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 500
    """How many connections there may be; a newcomer takes the place of the one that has been idle for longest."""

    max_header_size: Annotated[Size, Field(ge=1024, le=2**20)] = 16 * 2**10
    """The largest head of a request accepted: its first line and its headers, of which there may be 100."""

    max_body_size: Annotated[Size, Field(ge=2**20, le=2**30)] = 64 * 2**20
    """The largest body of a request accepted, such as a file of definitions. Most requests may have 256 KiB."""

    max_bodies_size: Annotated[Size, Field(ge=2**20, le=2**34)] = 128 * 2**20
    """How much memory the bodies of all requests together may take; a request for which there is none gets 503."""

    min_body_rate: Annotated[Size, Field(ge=1, le=2**30)] = 1024
    """The slowest body accepted, in bytes a second, measured over five seconds."""

    header_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """How long a client may take, in seconds, to send the head of a request."""

    idle_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 60
    """How long a connection may wait for its next request, in seconds."""

    stall_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 60
    """How long a client may take nothing of an answer that is sent, in seconds."""

    cors_allow_origins: Origins = Field(default_factory=list)
    """Pages of other origins that may use the API, such as ``https://console.example.com``; ``*`` is any."""

    cors_max_age_s: Annotated[int, Field(ge=0, le=86400)] = 1800
    """How long a browser remembers, in seconds, what such a page may do."""

    allow_hosts: Hosts = Field(default_factory=list)
    """Further names, without a port, by which requests may call this machine; ``*`` is any. See docs/management.md."""
