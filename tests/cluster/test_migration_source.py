"""The directories of a migration are those of the cells, in their order: the first one has the users."""

from pathlib import Path
from typing import cast

import pytest

from gateway.cluster.errors import ClusterMismatch
from gateway.node.cluster.migrating import require_users_first
from gateway.node.cluster.migration_source import MigrationSource


class Source:
    """A directory that is read."""

    def __init__(self, name: str, has_users: bool) -> None:
        self.directory = Path(name)
        self.has_users = has_users


def required(*sources: Source) -> None:
    require_users_first([cast(MigrationSource, source) for source in sources])


def test_the_directory_with_the_users_is_the_first() -> None:
    users, others = Source("cell-1", True), Source("cell-2", False)
    with pytest.raises(ClusterMismatch, match="of cell 1: cell-1 has users, and cell-2 has none"):
        required(others, users)
    assert required(users, others) is None
    assert required(others, others) is None  # logins are elsewhere, as with LDAP
