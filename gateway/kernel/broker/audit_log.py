"""The audit record: the changes that operators made, durable and bounded.

An entry is recorded in the turn of its change, so after a crash the store has both or neither.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gateway.kernel.acting import Actor
from gateway.kernel.broker.audit_chain import chained
from gateway.kernel.broker.audit_entries import AuditEntries, AuditEntry
from gateway.kernel.broker.audit_redaction import AuditRedaction, redacted_details, redacted_state
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.entity_codec import decode_entity, encode_entity, require_writable, writable
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.messages.message import Value

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: Entries removed in one step.
_STEP: Final = 64

#: The longest text of a user, an address or a subject, in characters: some are names that clients choose.
_LONGEST_TEXT: Final = 1024


@dataclass(frozen=True, slots=True)
class AuditRules:
    """The limits of the audit record: number of entries (0 turns it off), bytes in the store, and age (0 for none).

    ``longest_entry`` is the number of bytes above which an entry loses the states before and after.
    ``client_topology`` also records what AMQP and STOMP clients create, delete and purge, ``client_sessions`` the
    queues and bindings of MQTT sessions. ``redact`` are rules for states and requests.
    """

    max_entries: int = 10_000
    max_bytes: int = 16 * 2**20
    max_age_s: int = 90 * 86400
    longest_entry: int = 16 * 2**10
    client_topology: bool = False
    client_sessions: bool = False
    redact: tuple[AuditRedaction, ...] = ()


class AuditLog:
    """Owns the entries, oldest first. ``emit`` is called with an event ``audit.ACTION`` for each new one."""

    def __init__(self, journal: "Journal", emit: Callable[[Event], None], rules: AuditRules) -> None:
        self._journal = journal
        self._emit = emit
        self.rules = rules
        self._entries = AuditEntries()
        self._recovered: list[AuditEntry] = []
        self._number = 0
        self._digest = ""  # of the newest entry

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The bytes of all entries in the store."""
        return self._entries.size

    def newest_first(self) -> Iterator[AuditRecord]:
        """Return the entries as they are now, the newest first; entries above the age limit are left out."""
        oldest_ms = self._oldest_ms()
        return (_decoded(entry) for entry in self._entries.newest_first() if entry.at_ms >= oldest_ms)

    def number_from(self, first: int) -> None:
        """Give new entries higher numbers than ``first``, so that those of several brokers differ."""
        self._number = max(self._number, first)

    def record(
        self,
        actor: Actor,
        action: str,
        vhost: str = "",
        subject: str = "",
        *,
        before: Mapping[str, Value] | None = None,
        after: Mapping[str, Value] | None = None,
        details: Mapping[str, Value] | None = None,
    ) -> None:
        """Add an entry; the caller has replaced secrets. It becomes durable with the changes of this turn."""
        if not self.rules.max_entries:
            return
        self._number += 1
        redact = [rule for rule in self.rules.redact if rule.applies_to(action)]
        entry = AuditRecord(
            self._number,
            self._journal.now_ms,
            actor.user[:_LONGEST_TEXT],
            actor.address[:_LONGEST_TEXT],
            actor.surface,
            action,
            vhost,
            subject[:_LONGEST_TEXT],
            redacted_state(redact, before),
            redacted_state(redact, after),
            redacted_details(redact, details),
        )
        entry, put = self._bounded(entry)
        self._digest = entry.digest
        self._journal.record(put)
        self._entries.add(AuditEntry(entry.number, entry.at_ms, put.record))
        self._prune_some()
        self._emit(Event(f"audit.{action}", vhost, subject, _event_details(entry)))

    def _bounded(self, entry: AuditRecord) -> tuple[AuditRecord, Put]:
        """Return a chained entry and its change; one that is too long or not storable loses its states and details."""
        try:
            require_writable(entry.to_fields())
            entry = chained(entry, self._digest)
            put = writable(entry)
            reason = f"{len(put.record)} bytes are more than {self.rules.longest_entry}"
            if len(put.record) <= self.rules.longest_entry:
                return entry, put
        except PreconditionFailed as refusal:
            reason = str(refusal)[:_LONGEST_TEXT]
        numbers = {name: value for name, value in entry.details.items() if isinstance(value, bool | int)}
        entry = replace(
            entry,
            user=_storable(entry.user),
            vhost=_storable(entry.vhost),
            subject=_storable(entry.subject),
            before=None,
            after=None,
            details={**numbers, "left_out": reason},
        )
        entry = chained(entry, self._digest)
        return entry, writable(entry)

    # Recovery

    def install(self, entry: AuditRecord) -> None:
        """Add an entry found by recovery, in any order; ``settle`` sorts them."""
        self._recovered.append(AuditEntry(entry.number, entry.at_ms, encode_entity(entry)))

    def settle(self) -> None:
        """Add the recovered entries in their order, and remove those above the limits."""
        for entry in sorted(self._recovered):
            self._entries.add(entry)
            self._number = entry.number
        if self._recovered:
            self._digest = _decoded(max(self._recovered)).digest
        self._recovered = []
        self.prune()

    # Limits

    def prune(self) -> None:
        """Remove the entries above the limits, in slices."""
        self._journal.clock.background.add(self._pruning())

    def _pruning(self) -> Iterator[None]:
        while self._is_over():
            self._prune_some()
            yield

    def _prune_some(self) -> None:
        for _ in range(_STEP):
            if not self._is_over():
                return
            self._journal.record(Removed(AuditRecord.kind, (self._entries.drop_oldest(),)))

    def _is_over(self) -> bool:
        rules = self.rules
        return bool(self._entries) and (
            len(self._entries) > rules.max_entries
            or self._entries.size > rules.max_bytes
            or self._entries.oldest_ms < self._oldest_ms()
        )

    def _oldest_ms(self) -> int:
        return self._journal.now_ms - self.rules.max_age_s * 1000 if self.rules.max_age_s else 0


def _decoded(entry: AuditEntry) -> AuditRecord:
    decoded = decode_entity(AuditRecord.kind, entry.record)
    assert isinstance(decoded, AuditRecord)
    return decoded


def _storable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _event_details(entry: AuditRecord) -> dict[str, object]:
    details: dict[str, object] = {
        "number": entry.number,
        "user": entry.user,
        "address": entry.address,
        "surface": entry.surface,
        "digest": entry.digest,
    }
    if entry.before is not None:
        details["before"] = entry.before
    if entry.after is not None:
        details["after"] = entry.after
    return details | ({"details": entry.details} if entry.details else {})
