"""A console in front of a fresh gateway."""

import pytest

from tests.management.console import Console


@pytest.fixture
def console() -> Console:
    """An administrator's console; virtual host ``/`` is empty."""
    return Console()
