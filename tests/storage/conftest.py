"""The directory of an LMDB store."""

from collections.abc import Iterator

import pytest

from tests.storage.places import LmdbPlace


@pytest.fixture
def place() -> Iterator[LmdbPlace]:
    place = LmdbPlace()
    yield place
    place.close()
