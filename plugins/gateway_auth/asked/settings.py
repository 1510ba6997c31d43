"""The settings that all plugins share whose decisions another server takes."""

from typing import Self

from pydantic import Field, model_validator

from gateway.api import PluginSettings


class AskedSettings(PluginSettings):
    """The settings of questions to a server, and of its answers."""

    logins: bool = True
    """Whether the server decides on logins."""

    permissions: bool = True
    """Whether the server decides on permissions; if not, the next plugin that knows the user does."""

    timeout_s: float = Field(default=5.0, gt=0, le=60)
    """A server without a response is given up after this time."""

    cache_ttl_s: float = Field(default=60.0, ge=1, le=86_400)
    """Answers about permissions hold for this time."""

    ca_file: str = ""
    """Certificates of the authorities that sign the servers', in PEM format; without it the system's."""

    @model_validator(mode="after")
    def _decides(self) -> Self:
        if not (self.logins or self.permissions):
            raise ValueError("logins and permissions are both false, so the plugin would have no effect")
        return self
