"""The settings of ``auth-http``."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from gateway_auth.asked.settings import AskedSettings

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$")]


class HttpSettings(AskedSettings):
    """The settings of the HTTP backend; the first five are RabbitMQ's ``auth_http``."""

    user_path: Url | None = None
    """URL for logins; it gets ``username`` and ``password``."""

    vhost_path: Url | None = None
    """URL for the access to the virtual host."""

    resource_path: Url | None = None
    """URL for permissions on exchanges and queues."""

    topic_path: Url | None = None
    """URL for routing keys of topic exchanges, and topics of MQTT; without it none is restricted."""

    http_method: Literal["post", "get"] = "post"
    """How requests are sent; with ``get``, passwords are in the URL, which servers tend to log."""

    max_requests: int = Field(default=32, ge=1, le=1000)
    """Requests at the same time; others wait."""

    @model_validator(mode="after")
    def _has_paths(self) -> Self:
        if self.logins and self.user_path is None:
            raise ValueError("user_path is required, unless logins is false")
        if self.permissions and (self.vhost_path is None or self.resource_path is None):
            raise ValueError("vhost_path and resource_path are required, unless permissions is false")
        return self
