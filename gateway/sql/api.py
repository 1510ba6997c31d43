"""The part of a client of the management API that queries use; ``ApiClient`` of ``gatewayctl`` has it."""

from collections.abc import Mapping
from typing import Any, Protocol

from gateway.kernel.errors import GatewayError


class SqlFailed(GatewayError):
    """A query cannot be run; the reason is for its author."""


class Api(Protocol):
    """The management API as one user."""

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Any:  # Any: JSON
        """Get a path and decode the JSON."""
        ...

    def raw(self, *path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Get a path, as the bytes sent by the broker."""
        ...
