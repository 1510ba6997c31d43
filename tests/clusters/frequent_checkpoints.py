"""The program ``gateway``, whose logs get a checkpoint all the time, in very small pieces."""

import sys
from typing import Final

from gateway.cli.main import main
from gateway.cluster.replication import checkpoint, replicated_store

#: Bytes of growth before a checkpoint; records of a piece.
LEAST_GROWTH: Final = 20_000
MOST_RECORDS: Final = 10

if __name__ == "__main__":
    replicated_store._LEAST_GROWTH = LEAST_GROWTH  # type: ignore[misc]  # a constant everywhere else
    checkpoint.MOST_RECORDS = MOST_RECORDS  # type: ignore[misc]  # a constant everywhere else
    sys.exit(main())
