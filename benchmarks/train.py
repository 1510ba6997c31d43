"""The command ``python -m benchmarks.train``: each workload for a moment, as the compiler's profiling run.

``make wheel`` runs it on the instrumented build, between its two compilations; see
docs/adr/0014-compiled-by-example.md.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.load.__main__ import COMPARED
from benchmarks.load.compare import Comparison
from benchmarks.load.idle import raise_descriptor_limit
from benchmarks.load.peers import SUBJECT

#: Long enough that one-time work, such as logging in, is rare compared with the work for each message.
SECONDS: Final = 0.2


def main() -> int:
    """Run everything once; return the exit status."""
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory() as directory:
        comparison = Comparison([SUBJECT], Path(directory), say=print)
        comparison.run_workloads(COMPARED, SECONDS, repetitions=1)
    return 1 if comparison.results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
