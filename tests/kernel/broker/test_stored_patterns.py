"""A stored pattern that the engine does not support has no effect, is reported at the start, and stops nothing."""

from gateway.access import Operation, Principal
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Put
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.testing import MemoryBroker
from gateway_auth.internal import InternalAuthorizer

BAD = r"(a)\1"
POLICY = PolicyRecord("/", "old", False, BAD, "queues", 9, {"max-length": 1})


def restarted_with(*entities: PolicyRecord | UserRecord | PermissionRecord | TopicPermissionRecord) -> MemoryBroker:
    """Return a broker on a store with these records of an earlier version."""
    broker = MemoryBroker()
    for entity in entities:
        broker.kernel.journal.record(Put(entity))
    return broker.stopped()


def test_a_stored_policy_with_an_unsupported_pattern_matches_nothing() -> None:
    broker = restarted_with(POLICY, PolicyRecord("/", "new", False, "^aa", "queues", 0, {"max-length": 7}))
    queue = broker.vhost.declare_queue("aa")
    assert queue.settings.number("max-length") == 7
    assert broker.kernel.policies[POLICY.key] == POLICY
    assert "backreference" in broker.vhost.policies.fault(POLICY)


def test_a_policy_with_an_unsupported_pattern_is_reported_when_installed() -> None:
    broker = MemoryBroker()
    events: list[Event] = []
    broker.kernel.events.subscribe(events.append)
    broker.kernel.install_policy(POLICY)
    assert [(event.name, event.subject) for event in events] == [("policy.without_effect", "old")]


def test_a_stored_permission_with_an_unsupported_pattern_grants_nothing() -> None:
    user = UserRecord("anna", "", "rabbit_password_hashing_sha256", [], {})
    broker = restarted_with(
        user, PermissionRecord("/", "anna", BAD, "", ".*"), TopicPermissionRecord("/", "anna", "amq.topic", BAD, ".*")
    )
    directory = broker.kernel.directory
    permissions = InternalAuthorizer(directory).permissions(Principal("anna", frozenset()), "/")
    assert permissions is not None
    assert not permissions.may(Operation.CONFIGURE, "aa")
    assert permissions.may(Operation.READ, "aa")
    assert not permissions.may_use_topic(Operation.WRITE, "amq.topic", "aa")
    assert permissions.may_use_topic(Operation.READ, "amq.topic", "aa")
    assert [record.kind for record, reason in directory.faults()] == ["permission", "topic_permission"]
