"""The program ``gateway``, whose logs get a checkpoint all the time, in very small pieces."""

import sys
from typing import Final

from gateway.cli.main import main
from gateway.cluster.replication import checkpoint, log_growth

#: Bytes of growth before a checkpoint; records of a piece.
LEAST_BYTES: Final = 20_000
MOST_RECORDS: Final = 20

if __name__ == "__main__":
    log_growth._LEAST_BYTES = LEAST_BYTES  # type: ignore[misc]  # a constant everywhere else
    checkpoint.MOST_RECORDS = MOST_RECORDS  # type: ignore[misc]  # a constant everywhere else
    sys.exit(main())
