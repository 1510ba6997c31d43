"""The number of examples for property tests: all, or few in quick runs and where the same tests ran already."""

import os
from typing import Final

#: Set to "little" by ``make test-fast``, and for a second run, such as that of the compiled modules after the source.
VARIABLE: Final = "GATEWAY_TEST_EFFORT"


def examples(count: int) -> int:
    """Return the number of examples to try, ``count`` in a full run."""
    return count // 5 if os.environ.get(VARIABLE) == "little" else count
