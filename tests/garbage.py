"""Checks of the memory that an action leaves: live objects, and objects that only a garbage collection frees.

Thousands of tests may have run before in the same process; the objects they left are excluded first.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Maximum number of repeated collections: finalizers may create more garbage.
_MOST_COLLECTIONS = 10


def collect() -> None:
    """Collect garbage until none is left, because finalizers may create more."""
    for _ in range(_MOST_COLLECTIONS):
        if not gc.collect():
            return


def left_by(act: Callable[[], None]) -> list[object]:
    """Return the objects that an action leaves in reference cycles, and those that only these refer to."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        act()
        gc.collect()
        return list(gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_enabled:
            gc.enable()


def garbage_of(act: Callable[[], None]) -> list[str]:
    """Return the names of the gateway's classes whose instances an action leaves in reference cycles."""
    return sorted({type(each).__qualname__ for each in left_by(act) if "gateway" in type(each).__module__})


@contextmanager
def living(kind: type) -> Iterator[Callable[[], int]]:
    """Count the live objects of a class that were created within the context.

    The class must be one that the collector tracks: its instances refer to others. Older objects are frozen
    meanwhile: they do not count, and traversing all objects of earlier tests would take a second or two each time.
    """

    def count() -> int:
        gc.collect()
        return sum(type(each) is kind for each in gc.get_objects())

    collect()
    gc.freeze()
    try:
        yield count
    finally:
        gc.unfreeze()
