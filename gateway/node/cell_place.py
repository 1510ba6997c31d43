"""The place of a node in a cluster with several cells, as the node sees it."""

from collections.abc import Generator, Iterator
from typing import Any, Protocol

from gateway.kernel.broker.broker import Broker
from gateway.management.cells.cells import Cells
from gateway.management.cells.definitions import DefinitionParts


class CellPlace(Protocol):
    """The cell that a node leads.

    ``is_first``: it is the cell that has the users and all else that has no virtual host. ``api`` is what the HTTP API
    uses.
    """

    @property
    def is_first(self) -> bool:
        """See the class."""
        ...

    @property
    def api(self) -> Cells:
        """See the class."""
        ...

    @property
    def has_vhosts(self) -> bool:
        """Whether the cluster has virtual hosts, in any cell."""
        ...

    def has(self, vhost: str) -> bool:
        """Whether a virtual host of the settings belongs to this cell."""
        ...

    def taking(self, broker: Broker) -> Iterator[None]:
        """Return the steps that make the broker have what the records of the cluster say; called after its recovery."""
        ...

    def sharing(self, document: Any, default_vhost: str) -> Generator[None, None, DefinitionParts]:  # Any: JSON
        """Return the part of this cell of definitions whose form is checked, in steps; the others get theirs later."""
        ...
