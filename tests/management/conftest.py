"""Fixture: an API client of a new gateway."""

import pytest

from tests.management.console import Console


@pytest.fixture
def console() -> Console:
    """An administrator's console; the virtual host ``/`` is empty."""
    return Console()
