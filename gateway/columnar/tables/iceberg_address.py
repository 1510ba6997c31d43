"""The address of the Iceberg tables: catalogue, namespace and location. This module does not need Arrow or Iceberg."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

ARCHIVE_TABLE: Final = "archive"
TRACE_TABLE: Final = "trace"
DEAD_LETTER_TABLE: Final = "dead_letters"
"""The names of the tables of messages, of events, and of messages whose bodies a typed table refuses."""

FILE_SCHEME: Final = "file://"


@dataclass(frozen=True, slots=True)
class IcebergAddress:
    """The place of the tables.

    ``properties`` are those of the catalogue for pyiceberg. The tables are below the URI ``location``. ``snapshots`` is
    the number of snapshots that a table keeps.
    """

    properties: Mapping[str, str]
    namespace: str
    location: str
    snapshots: int

    def as_head(self) -> dict[str, Any]:
        """Return the address as JSON for a request to the worker."""
        return asdict(self)

    @classmethod
    def from_head(cls, head: Mapping[str, Any]) -> Self:
        """Return the address in a request."""
        return cls(**head)

    def location_of(self, table: str) -> str:
        """Return the URI of a table's directory."""
        return f"{self.location.rstrip('/')}/{table}"


def is_local(location: str) -> bool:
    """Return whether a URI is a path on a local disk."""
    return location.startswith((FILE_SCHEME, "/"))


def local_path(location: str) -> str:
    """Return the path of a local URI. Unlike in a web address, every character stands for itself."""
    return location.removeprefix(FILE_SCHEME)
