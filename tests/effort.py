"""The number of examples for property tests: half, all on request, or few in quick runs and where they ran already."""

import os
from typing import Final

#: "little" is set by ``make test-fast``, and for a second run, such as that of the compiled modules after the source.
#: "all" is for the search of a night: ``GATEWAY_TEST_EFFORT=all make test``.
VARIABLE: Final = "GATEWAY_TEST_EFFORT"

_DIVISORS: Final = {"all": 1, "": 2, "little": 5}


def examples(count: int) -> int:
    """Return the number of examples to try, ``count`` with all effort."""
    return count // _DIVISORS[os.environ.get(VARIABLE, "")]
