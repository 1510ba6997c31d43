"""The interface of the management API to the plugins of a running broker."""

from collections.abc import Generator, Iterator, Mapping
from typing import Protocol

from gateway.kernel.messages.message import Value
from gateway.management.http.routes import Fields


class PluginControl(Protocol):
    """Lists plugins and changes them. A change is a generator of steps, as of a ``LongTask``.

    Changes raise ``ConfigurationError`` or ``Refused`` with a reason for the operator.
    """

    def available(self) -> Iterator[Fields]:
        """Yield a row for each plugin of this process: its source, hooks, settings and virtual hosts."""
        ...

    def in_vhost(self, vhost: str) -> Iterator[Fields]:
        """Yield a row for each plugin, with its state in an existing virtual host."""
        ...

    def enabling(self, vhost: str, name: str, settings: Mapping[str, Value] | None) -> Generator[None, None, None]:
        """Return the steps that enable a plugin, or change its settings."""
        ...

    def disabling(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that disable a plugin."""
        ...

    def reloading(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that put the version of the file in use."""
        ...

    def rolling_back(self, vhost: str, name: str) -> Generator[None, None, None]:
        """Return the steps that put the version before the last reload in use."""
        ...

    def upload(self, name: str, source: bytes, user: str) -> bool:
        """Write a plugin file; return whether it existed."""
        ...
