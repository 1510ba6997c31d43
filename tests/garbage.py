"""What a piece of work leaves in memory: objects that are alive, and objects that only a collection of garbage frees.

Thousands of tests may have run before in the same process: what they left is put out of sight first.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Collections after which none should find anything: what one frees may leave work for the next, and so on.
_MOST_COLLECTIONS = 10


def collect() -> None:
    """Collect garbage until none is left: finalizers may make more."""
    for _ in range(_MOST_COLLECTIONS):
        if not gc.collect():
            return


def left_by(act: Callable[[], None]) -> list[object]:
    """Return the objects that an action leaves in reference cycles, and what only they refer to."""
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
    """Return the names of the gateway's classes of which an action leaves something in reference cycles."""
    return sorted({type(each).__qualname__ for each in left_by(act) if "gateway" in type(each).__module__})


@contextmanager
def living(kind: type) -> Iterator[Callable[[], int]]:
    """Count the objects of a class in memory that were made within the context.

    The class has to be one whose objects the collector sees: they refer to others. Older objects are frozen meanwhile:
    they do not count, and looking through all that other tests left would take a second or two each time.
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
