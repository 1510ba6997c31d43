"""The chain of the audit record: the digest of each entry covers the entry and the digest of the one before it.

An entry that is changed, removed, inserted or moved breaks the chain, and the place is known. Digests need no secret: a
record that was written anew from some entry on is consistent, but has another digest at its end. So notes of digests
outside of the broker confirm everything before them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final

from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.messages.json_values import plain

COVERED: Final = (
    "number", "at_ms", "user", "address", "surface", "action", "vhost", "subject", "before", "after", "details",
)  # fmt: skip
"""The fields of an entry that its digest covers, as the HTTP API names them, too."""


def digest_of(previous: str, fields: Mapping[str, object]) -> str:
    """Return the digest of an entry with these fields that follows one with the digest ``previous``.

    It is SHA-256, in hexadecimal, of ``previous`` and the JSON of the covered fields: sorted, without spaces, in ASCII.
    """
    covered = plain({name: fields[name] for name in COVERED})
    written = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return sha256(f"{previous}\n{written}".encode()).hexdigest()


def chained(entry: AuditRecord, previous: str) -> AuditRecord:
    """Return an entry that follows one with the digest ``previous``, empty for none."""
    fields = {name: getattr(entry, name) for name in COVERED}
    return replace(entry, previous=previous, digest=digest_of(previous, fields))
