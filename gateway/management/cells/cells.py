"""The cells of a cluster, as the HTTP API of one of their leaders uses them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from gateway.management.cells.cell_answer import CellAnswer, CellFlow, CellQuestion


class PlacedVhost(NamedTuple):
    """The cell of a virtual host; ``is_new``: it did not exist before, in no cell."""

    cell: int
    is_new: bool


class Cells(Protocol):
    """The other cells, and the virtual hosts of each. ``own`` is the number of the cell whose leader this is.

    The leader of the first cell has the users and all else that has no virtual host, and answers all clients.
    """

    @property
    def own(self) -> int:
        """See the class."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether this is the leader of the first cell."""
        ...

    @property
    def others(self) -> Sequence[int]:
        """The numbers of the other cells."""
        ...

    def cell_of(self, vhost: str) -> int | None:
        """Return the cell of a virtual host; ``None`` if it does not exist."""
        ...

    def is_being_deleted(self, vhost: str) -> bool:
        """Whether a virtual host is being deleted."""
        ...

    def emptiest(self) -> int:
        """Return the cell with the fewest virtual hosts."""
        ...

    def spread(self, wanted: Mapping[str, int | None]) -> dict[str, int]:
        """Return the cells of new virtual hosts: the wanted ones, else those with the fewest, the new ones included."""
        ...

    def place(self, vhost: str, wanted: int | None = None) -> "Deferred[PlacedVhost]":
        """Choose the cell of a new virtual host, perhaps the wanted one; return it once all nodes know.

        It may have been made in another one meanwhile.
        """
        ...

    def keep_placed(self, vhost: str) -> bool:
        """Keep the record of a virtual host, which another request may make; return whether it was there to keep."""
        ...

    def forget_placed(self, vhost: str) -> None:
        """Delete the record of a virtual host that was placed and is not made after all, unless it must be kept."""
        ...

    def mark_deleting(self, vhost: str) -> "Deferred[None]":
        """Note that a virtual host of this cell is being deleted, before it is."""
        ...

    def when_shared(self, call: Callable[[], None]) -> None:
        """Call back once the leaders of the other cells know of all changes of users and the like so far."""
        ...

    def ask(self, cell: int, question: "CellQuestion", answer: "CellAnswer") -> "CellFlow":
        """Let the leader of another cell answer a request of a user, or one that is derived from it."""
        ...
