"""The compiled packages: built once for all tests of this folder."""

import os
from collections.abc import Mapping

import pytest

from tests.compiled.building import COMPILED, ROOT, make


@pytest.fixture(scope="session")
def environment() -> Mapping[str, str]:
    """What makes Python take the compiled packages before the source, once they are built: as quickly as can be."""
    make("wheel", "PROFILE=quick")
    return os.environ | {"PYTHONPATH": f"{COMPILED}:{ROOT}", "PYTHONSAFEPATH": "1"}
