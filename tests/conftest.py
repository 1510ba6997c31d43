"""Settings of all tests."""

import gc
import importlib.metadata
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from tests.effort import examples

# The deadline of an example is 200 ms by default: too short for a busy machine. A test that does not say how many
# examples it tries has Hypothesis' 100, and fewer where the others have fewer, too.
settings.register_profile("without deadline", deadline=None, max_examples=examples(100))
settings.load_profile("without deadline")

# Tests make tens of thousands of objects that stay for a moment: collecting after each 700, as Python does by default,
# or after each 50,000 takes up to a tenth of their processor time. A broker sets its own thresholds, and tests of
# garbage collect it themselves.
gc.set_threshold(1_000_000, 20, 100)

#: So much garbage is kept rather than freed: to free it takes longer than to test with less memory.
_FEW_OBJECTS: Final = 300_000

# Before each test pytest asks for the version of Twisted, for which its file of metadata is read and parsed.
importlib.metadata.version = cache(importlib.metadata.version)

_begun_modules: set[Path] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Freeze all objects before the first test of a module, so that the collections in its tests traverse only its own.

    There are more than a million objects after the collection of thousands of tests: a full collection takes half a
    second. Garbage stays after that, so it is collected first if there may be much.
    """
    if item.path not in _begun_modules:
        _begun_modules.add(item.path)
        new, collections, _ = gc.get_count()
        if new > _FEW_OBJECTS or collections:
            gc.collect()
        gc.freeze()
