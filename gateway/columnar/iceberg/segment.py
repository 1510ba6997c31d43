"""A sealed segment of an archive, as the table of the archive identifies it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

#: Table property with the identities of the latest segments, the last at the end. It changes in the commit that adds
#: their rows.
FILED: Final = "gateway.filed"

#: Identities in the property. Only the latest segment of an archive can be requested again.
_MOST_FILED: Final = 256


@dataclass(frozen=True, slots=True)
class Segment:
    """The messages of an archive from offset ``first`` to before ``end``; the archive began at ``since_ms``.

    ``source`` is ``exchange``, ``queue`` or ``trace``, and ``name`` which.
    """

    vhost: str
    source: str
    name: str
    since_ms: int
    first: int
    end: int

    @classmethod
    def of_request(cls, head: Mapping[str, Any]) -> Self:
        """Return the segment of a request to the worker."""
        return cls(head["vhost"], head["source"], head["name"], head["since_ms"], head["from"], head["to"])

    @property
    def identity(self) -> str:
        """A digest of all fields."""
        fields = (self.vhost, self.source, self.name, self.since_ms, self.first, self.end)
        return blake2b(json.dumps(fields).encode(), digest_size=12).hexdigest()

    def summary(self) -> dict[str, str]:
        """Return the properties of the snapshot that adds the segment, for people."""
        return {
            "gateway.vhost": self.vhost,
            "gateway.source": self.source,
            "gateway.source-name": self.name,
            "gateway.since-ms": str(self.since_ms),
            "gateway.first": str(self.first),
            "gateway.next": str(self.end),
        }


def filed_identities(properties: Mapping[str, str]) -> list[str]:
    """Return the identities of the latest segments in a table with these properties."""
    return properties.get(FILED, "").split()


def with_identities(properties: Mapping[str, str], identities: Iterable[str]) -> str:
    """Return the value of the property after the commit of further segments."""
    return " ".join([*filed_identities(properties), *identities][-_MOST_FILED:])
