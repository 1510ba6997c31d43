"""Fixtures of the tests of the edge."""

import gc
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

GarbageOf: TypeAlias = Callable[[Callable[[], None]], list[str]]


@pytest.fixture
def garbage_of() -> Iterator[GarbageOf]:
    """Return the names of the gateway's classes of which something was left that only a collection frees."""

    def garbage_of(act: Callable[[], None]) -> list[str]:
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        act()
        gc.collect()
        return sorted({type(each).__qualname__ for each in gc.garbage if "gateway" in type(each).__module__})

    gc.disable()
    yield garbage_of
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()
