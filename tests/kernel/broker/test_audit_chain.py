"""The chain of the audit record, over restarts, limits and entries of any values."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.cli.ctl.audit_verification import AuditVerification
from gateway.kernel.acting import Actor
from gateway.kernel.journal.entity_codec import decode_entity, encode_entity
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.kernel.messages.message import Value
from gateway.management.resources.node.audit import audit_view
from gateway.management.views.json import encode
from gateway.testing.broker import MemoryBroker

ALICE = Actor("alice", "10.0.0.1", "HTTP")


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def verified(broker: MemoryBroker) -> AuditVerification:
    """Verify the entries as a client of the API gets them."""
    verification = AuditVerification()
    newest_first = [json.loads(encode(audit_view(entry))) for entry in broker.kernel.audit.newest_first()]
    verification.verify(reversed(newest_first))
    return verification


def test_the_chain_continues_after_a_crash(broker: MemoryBroker) -> None:
    for number in range(3):
        broker.kernel.audit.record(ALICE, f"a.{number}")
    broker.commit()
    broker.kernel.audit.record(ALICE, "lost")
    restarted = broker.crashed()
    restarted.kernel.audit.record(ALICE, "a.3")
    found = verified(restarted)
    assert (found.findings, found.verified) == ([], 4)


def test_entries_that_limits_drop_do_not_break_the_chain(broker: MemoryBroker) -> None:
    log = broker.kernel.audit
    log.rules = replace(log.rules, max_entries=2)
    for number in range(5):
        log.record(ALICE, f"a.{number}")
    found = verified(broker)
    assert (found.findings, found.verified) == ([], 2)
    oldest = list(log.newest_first())[-1]
    assert oldest.previous != ""


def test_values_that_json_lacks_are_covered_as_the_api_shows_them(broker: MemoryBroker) -> None:
    values: dict[str, Value] = {
        "bytes": b"\xff\x00",
        "text": b"abc",
        "decimal": Decimal("1.5"),
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "float": 0.1,
        "infinite": float("inf"),
        "large": 2**63 - 1,
        "nested": {"é": [None, True, {}]},
    }
    broker.kernel.audit.record(ALICE, "queue.created", after=values, details=values)
    broker.commit()
    assert verified(broker).findings == verified(broker.crashed()).findings == []


def test_an_entry_that_loses_its_states_is_covered_without_them(broker: MemoryBroker) -> None:
    broker.kernel.audit.record(ALICE, "a", after={"long": "x" * 100_000})
    broker.kernel.audit.record(ALICE, "b", subject="lone \ud800 surrogate")
    broker.commit()
    found = verified(broker.crashed())
    assert (found.findings, found.verified) == ([], 2)


def test_entries_of_the_first_layout_have_no_digests() -> None:
    entry = AuditRecord(1, 0, "a", "", "HTTP", "b", "", "", None, None, {})
    fields = {name: value for name, value in entry.to_fields().items() if name not in ("previous", "digest")}
    assert AuditRecord.from_fields(fields, 1) == entry
    assert decode_entity("audit", encode_entity(entry)) == entry
