"""How much the tests that guess try: all of it, or little where the same tests ran already."""

import os
from typing import Final

#: Set to "little" where something is tried a second time, as what is compiled is after the source.
VARIABLE: Final = "GATEWAY_TEST_EFFORT"


def examples(count: int) -> int:
    """Return how many examples to try, where ``count`` would be all of them."""
    return count // 5 if os.environ.get(VARIABLE) == "little" else count
