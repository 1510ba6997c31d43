"""Changes that operators make to a cluster of several nodes, as the API's resources use them."""

from collections.abc import Coroutine
from typing import Any, Protocol, TypeAlias

Change: TypeAlias = Coroutine[Any, Any, None]  # Any: as for every coroutine
"""What ends when a change is made."""


class ClusterControl(Protocol):
    """The control of a cluster. A change raises a ``GatewayError`` if it cannot be made; then nothing has changed."""

    def drain(self, name: str) -> Change:
        """Put a node into maintenance until it is revived or restarted: no clients, no leadership."""
        ...

    def revive(self, name: str) -> Change:
        """Put a node into service again."""
        ...

    def transfer(self, name: str, cell: int = 1) -> Change:
        """Let a node lead a cell, soon; with an empty name any other one."""
        ...

    def rebalance(self) -> Change:
        """Spread the leaders of the cells over the nodes, soon."""
        ...

    def forget(self, name: str) -> Change:
        """Delete the record of a node that is not alive."""
        ...
