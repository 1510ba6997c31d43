"""The settings of ``auth-http``."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gateway.api import PluginSettings

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$")]


class HttpSettings(PluginSettings):
    """The settings of the HTTP backend; the first five are RabbitMQ's ``auth_http``."""

    user_path: Url
    """URL for logins; it gets ``username`` and ``password``."""

    vhost_path: Url
    """URL for the access to the virtual host."""

    resource_path: Url
    """URL for permissions on exchanges and queues."""

    topic_path: Url | None = None
    """URL for routing keys of topic exchanges, and topics of MQTT; without it none is restricted."""

    http_method: Literal["post", "get"] = "post"
    """How requests are sent; with ``get``, passwords are in the URL, which servers tend to log."""

    timeout_s: float = Field(default=5.0, gt=0, le=60)
    """A request without a response fails after this time."""

    max_requests: int = Field(default=32, ge=1, le=1000)
    """Requests at the same time; others wait."""

    cache_ttl_s: float = Field(default=60.0, ge=1, le=86_400)
    """Answers about permissions hold for this time."""

    remember_logins_s: float = Field(default=0.0, ge=0, le=86_400)
    """A successful login with the same credentials is not asked for again within this time."""

    ca_file: str = ""
    """Certificates of the authorities that sign the server's, in PEM format; without it the system's."""
