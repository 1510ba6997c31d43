"""Rules that replace parts of entries of the audit record; the chain covers what is recorded."""

from dataclasses import replace

import pytest

from gateway.cli.ctl.audit_verification import AuditVerification
from gateway.kernel.acting import Actor
from gateway.kernel.broker.audit_log import AuditRules
from gateway.kernel.broker.audit_redaction import AuditRedaction
from gateway.kernel.events import Event
from gateway.kernel.journal.records.audit import AuditRecord
from gateway.management.resources.node.audit import audit_view
from gateway.testing.broker import MemoryBroker

ALICE = Actor("alice", "10.0.0.1", "HTTP")


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def recorded(broker: MemoryBroker, action: str, *rules: str) -> AuditRecord:
    """Record an entry with a state and a request, under these rules."""
    log = broker.kernel.audit
    log.rules = replace(AuditRules(), redact=tuple(AuditRedaction.parse(rule) for rule in rules))
    state = {"arguments": {"x-owner": "ann", "x-max-length": 5}}
    log.record(ALICE, action, "/", "q", before=state, after=state, details={"request": state, "reason": "ann"})
    return next(log.newest_first())


def test_parts_of_states_and_of_the_request_are_replaced(broker: MemoryBroker) -> None:
    entry = recorded(broker, "queue.created", "queue.* $.arguments.x-owner")
    state = {"arguments": {"x-owner": "***", "x-max-length": 5}}
    assert entry.before == entry.after == entry.details["request"] == state
    assert entry.details["reason"] == "ann"


def test_a_rule_for_the_whole_leaves_nothing(broker: MemoryBroker) -> None:
    entry = recorded(broker, "queue.created", "queue.created $")
    assert (entry.before, entry.after) == ({"redacted": True}, {"redacted": True})
    assert entry.details["request"] == "***"


def test_other_actions_are_recorded_as_they_are(broker: MemoryBroker) -> None:
    entry = recorded(broker, "queue.deleted", "queue.created $", "policy.* $")
    assert entry.after == {"arguments": {"x-owner": "ann", "x-max-length": 5}}


def test_the_chain_and_the_event_have_the_redacted_entry(broker: MemoryBroker) -> None:
    events: list[Event] = []
    broker.kernel.events.subscribe(events.append)
    recorded(broker, "queue.created", "* $.arguments.*")
    recorded(broker, "queue.created")
    broker.commit()
    verification = AuditVerification()
    verification.verify([audit_view(entry) for entry in broker.crashed().kernel.audit.newest_first()][::-1])
    assert (verification.findings, verification.verified) == ([], 2)
    assert events[0].details["after"] == {"arguments": {"x-owner": "***", "x-max-length": "***"}}
