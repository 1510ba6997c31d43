"""The record of one change that an operator made."""

from dataclasses import dataclass
from typing import ClassVar

from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.messages.message import Value


@dataclass(frozen=True, slots=True)
class AuditRecord(Entity):
    """One entry of the audit record: who changed what, when (wall time) and from where.

    ``surface`` is the way the change came: ``HTTP``, ``CLI``, ``definitions``, ``configuration``, ``plugin`` or a
    protocol. ``before`` and ``after`` are the subject without its secrets, ``None`` where it did not exist or has no
    state. ``vhost`` is empty for changes of the node. ``digest`` covers the entry and ``previous``, the digest of the
    one before it (``audit_chain``); both are empty in entries of the first layout.
    """

    kind: ClassVar[str] = "audit"
    version: ClassVar[int] = 2
    number: int
    at_ms: int
    user: str
    address: str
    surface: str
    action: str
    vhost: str
    subject: str
    before: dict[str, Value] | None
    after: dict[str, Value] | None
    details: dict[str, Value]
    previous: str = ""
    digest: str = ""
