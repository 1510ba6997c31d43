"""What a piece of work leaves behind that only a garbage collection frees.

No conftest: the tests of what is compiled run several folders at once, where two of that name cannot be told apart.
"""

import gc
from collections.abc import Callable


def garbage_of(act: Callable[[], None]) -> list[str]:
    """Return the names of the gateway's classes of which something was left in reference cycles."""
    gc.disable()
    try:
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        act()
        gc.collect()
        return sorted({type(each).__qualname__ for each in gc.garbage if "gateway" in type(each).__module__})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
