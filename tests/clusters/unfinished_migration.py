"""The program ``gateway``, whose migration is killed when it has read nine tenths of its source."""

import os
import signal
import sys
from typing import Final

from gateway.cli.main import main
from gateway.cluster.replication.migration import MigrationProgress
from gateway.node.cluster.migrating import MigrationReports

#: The part of the records that is read. Much of it is in the log then, because few pieces wait for the log.
_PART: Final = 0.9

_on_progress: Final = MigrationReports.on_progress


def on_progress(self: MigrationReports, progress: MigrationProgress) -> None:
    """Report the progress, or kill this process."""
    if progress.records >= _PART * self._count:
        os.kill(os.getpid(), signal.SIGKILL)
    _on_progress(self, progress)


if __name__ == "__main__":
    MigrationReports.on_progress = on_progress  # type: ignore[method-assign]  # for this process
    sys.exit(main())
