"""The number of cells: it can grow, and does not shrink, because each cell may have virtual hosts."""

from contextlib import suppress
from typing import Final

from gateway.cluster.errors import Outdated
from gateway.cluster.metadata import NEVER, Key, Metadata

#: The keys of the records of cells begin with this part. The first cell has none.
CELL: Final = "cell"


async def cell_count(metadata: Metadata, wanted: int) -> int:
    """Return how many cells there are: as many as this node wants, or another one has made.

    :raises Unanswered: if the engine does not answer.
    """
    count = 1
    while True:
        key: Key = (CELL, str(count + 1))
        if count < wanted:
            with suppress(Outdated):  # another node has made it
                await metadata.put(key, b"{}", NEVER)
        elif await metadata.get(key) is None:
            return count
        count += 1
