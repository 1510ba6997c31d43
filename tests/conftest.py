"""Settings of all tests."""

import gc
from pathlib import Path

import pytest
from hypothesis import settings

from tests.effort import examples

# The deadline of an example is 200 ms by default: too short for a busy machine. A test that does not say how many
# examples it tries has Hypothesis' 100, and fewer where the others have fewer, too.
settings.register_profile("without deadline", deadline=None, max_examples=examples(100))
settings.load_profile("without deadline")

# Tests make tens of thousands of objects that stay for a moment; collecting after each 700, as Python does by default,
# takes 3 to 8 % of their processor time. A broker sets its own thresholds, and tests of garbage collect it themselves.
gc.set_threshold(50_000, 20, 100)

_begun_modules: set[Path] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Freeze all objects before the first test of a module, so that the collections in its tests traverse only its own.

    There are more than a million objects after the collection of thousands of tests: a full collection takes half a
    second. Garbage is collected first; it would stay otherwise.
    """
    if item.path not in _begun_modules:
        _begun_modules.add(item.path)
        gc.collect()
        gc.freeze()
