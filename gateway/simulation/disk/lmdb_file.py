"""A simulated file of LMDB: committed states, of which a loss of power keeps one that was durable or a later one."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from gateway.simulation.disk.files import File
from gateway.simulation.disk.tables import PAGE_SIZE, Table

#: Pages in use beside those of the tables: two roots, the list of free pages, and the table of tables.
_OTHER_PAGES: Final = 4

#: Pages that each transaction writes beside those of the tables.
_ALWAYS_WRITTEN: Final = 2


@dataclass(frozen=True, slots=True)
class Root:
    """A committed state, the ``number``-th of its file.

    ``free`` holds the numbers of free pages, each with the number of the transaction that freed them.
    """

    number: int
    tables: dict[bytes, Table]
    last_page: int
    free: tuple[tuple[int, int], ...] = ()


class LmdbFile(File):
    """The file. ``roots`` begins with the last state that is durable; its last is the current one."""

    def __init__(self) -> None:
        super().__init__()
        self.roots = [Root(0, {}, 1)]
        self.page_count = 0

    @property
    def latest(self) -> Root:
        """The current state."""
        return self.roots[-1]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.page_count * PAGE_SIZE

    def sync(self) -> None:
        """Make the current state durable."""
        del self.roots[:-1]

    def lose_power(self, random: Random) -> None:
        """Keep the durable state or a later one."""
        if len(self.roots) > 1:
            self.roots = [random.choice(self.roots)]

    def freeze(self) -> Callable[[], None]:
        """Return a call that restores what is durable now."""
        durable = self.roots[0]

        def restore() -> None:
            self.roots = [durable]

        return restore

    def next_root(self, tables: dict[bytes, Table], changed: list[Table], oldest: int) -> Root:
        """Return the state after a transaction; ``oldest`` is the oldest state in use.

        A transaction writes pages that no state in use needs, and new ones at the end of the file. Pages that it frees
        are reused two transactions later.
        """
        before = self.latest
        reusable = sum(pages for freed_by, pages in before.free if freed_by < oldest)
        kept = tuple((freed_by, pages) for freed_by, pages in before.free if freed_by >= oldest)
        written = _ALWAYS_WRITTEN + sum(table.written_pages for table in changed)
        left = max(0, reusable - written)
        last_page = before.last_page + max(0, written - reusable)
        used = _OTHER_PAGES + sum(table.pages for table in tables.values())
        freed = last_page + 1 - used - left - sum(pages for _, pages in kept)
        if freed < 0:
            last_page -= freed
            freed = 0
        number = before.number + 1
        return Root(number, tables, last_page, ((0, left), *kept, (number, freed)))

    def compact_copy(self) -> "LmdbFile":
        """Return a durable copy of the current state without free pages."""
        copy = LmdbFile()
        tables = self.latest.tables
        copy.roots = [Root(self.latest.number, tables, _OTHER_PAGES + sum(table.pages for table in tables.values()))]
        copy.page_count = copy.latest.last_page + 1
        return copy
