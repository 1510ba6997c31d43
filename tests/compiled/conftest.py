"""Builds the compiled packages once for all tests of this folder."""

import os
from collections.abc import Mapping

import pytest

from tests.compiled.building import COMPILED, ROOT, make


@pytest.fixture(scope="session")
def environment() -> Mapping[str, str]:
    """Build the packages with the quick profile; return an environment in which Python prefers them to the source."""
    make("wheel", "PROFILE=quick")
    return os.environ | {"PYTHONPATH": f"{COMPILED}:{ROOT}", "PYTHONSAFEPATH": "1"}
