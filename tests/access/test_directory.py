"""The directory records every change, is restored from the records, and notifies listeners."""

from collections import deque
from collections.abc import Iterator

import pytest

from gateway.kernel.broker.directory import Directory
from gateway.kernel.errors import NotFound, PreconditionFailed
from gateway.kernel.journal.changes import Change, Put, Removed
from gateway.kernel.journal.records.access import PermissionRecord, SecretRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import VhostRecord
from gateway.patterns import compile_pattern

ANNA = UserRecord("anna", "hash", "rabbit_password_hashing_sha256", ["management"], {})
BERT = UserRecord("bert", "hash", "rabbit_password_hashing_sha256", [], {})
ANNA_IN_ROOT = PermissionRecord("/", "anna", ".*", ".*", ".*")
ANNA_IN_SHOP = PermissionRecord("shop", "anna", "", "^a", ".*")
BERT_IN_SHOP = PermissionRecord("shop", "bert", "", "^b", ".*")
ANNAS_TOPIC = TopicPermissionRecord("shop", "anna", "events", "^a", ".*")


@pytest.fixture
def log() -> list[Change]:
    return []


@pytest.fixture
def directory(log: list[Change]) -> Directory:
    directory = Directory(log.append, compile_pattern)
    for user in (ANNA, BERT):
        directory.put_user(user)
    for permission in (ANNA_IN_ROOT, ANNA_IN_SHOP, BERT_IN_SHOP):
        directory.put_permission(permission)
    directory.put_topic_permission(ANNAS_TOPIC)
    return directory


def everything_in(directory: Directory) -> list[object]:
    return sorted(directory.entities(), key=repr)


def test_stored_records_are_found(directory: Directory) -> None:
    assert directory.user("anna") == ANNA
    assert directory.user("unknown") is None
    assert directory.permission("shop", "anna") == ANNA_IN_SHOP
    assert directory.permission("/", "bert") is None
    assert directory.topic_permissions_of("shop", "anna") == [ANNAS_TOPIC]
    assert directory.topic_permissions_of("/", "anna") == []


def test_every_change_is_recorded(directory: Directory, log: list[Change]) -> None:
    assert log == [Put(e) for e in (ANNA, BERT, ANNA_IN_ROOT, ANNA_IN_SHOP, BERT_IN_SHOP, ANNAS_TOPIC)]


def test_removing_a_user_removes_its_permissions(directory: Directory, log: list[Change]) -> None:
    del log[:]
    directory.remove_user("anna")
    assert everything_in(directory) == sorted([BERT, BERT_IN_SHOP], key=repr)
    assert log == [
        Removed("permission", ("/", "anna")),
        Removed("permission", ("shop", "anna")),
        Removed("topic_permission", ("shop", "anna", "events")),
        Removed("user", ("anna",)),
    ]


def test_removing_a_virtual_host_removes_the_permissions_in_it(directory: Directory) -> None:
    deque(directory.removing_vhost("shop"), maxlen=0)
    assert everything_in(directory) == sorted([ANNA, BERT, ANNA_IN_ROOT], key=repr)


def test_single_permissions_can_be_removed(directory: Directory) -> None:
    directory.remove_permission("shop", "anna")
    directory.remove_topic_permission("shop", "anna", "events")
    assert everything_in(directory) == sorted([ANNA, BERT, ANNA_IN_ROOT, BERT_IN_SHOP], key=repr)


def test_removing_missing_permissions_records_nothing(directory: Directory, log: list[Change]) -> None:
    del log[:]
    directory.remove_permission("/", "bert")
    directory.remove_topic_permission("shop", "bert", "events")
    assert log == []


@pytest.mark.parametrize("removed", ["nothing", "anna", "shop"])
def test_the_directory_is_restored_from_its_records(directory: Directory, log: list[Change], removed: str) -> None:
    if removed == "anna":
        directory.remove_user("anna")
    elif removed == "shop":
        deque(directory.removing_vhost("shop"), maxlen=0)
    recovered = Directory(lambda change: pytest.fail("recovery records nothing"), compile_pattern)
    for change in [*log, *log]:  # applying them twice has no further effect
        recovered.apply(change)
    assert everything_in(recovered) == everything_in(directory)


def test_changes_of_other_entities_are_ignored(directory: Directory) -> None:
    before = everything_in(directory)
    directory.apply(Put(VhostRecord("shop", "", [], "classic", False, {}, {})))
    directory.apply(Removed("vhost", ("shop",)))
    assert everything_in(directory) == before


def test_listeners_are_notified_of_users_with_changed_permissions(directory: Directory) -> None:
    received: list[str] = []
    directory.on_change(received.append)
    directory.put_permission(BERT_IN_SHOP)
    directory.remove_topic_permission("shop", "anna", "events")
    directory.remove_user("bert")
    assert received == ["bert", "anna", "bert"]


class Listener:
    """An object with a listener method."""

    def __init__(self, directory: Directory, received: list[str]) -> None:
        self._received = received
        directory.on_change(self.changed)

    def changed(self, name: str) -> None:
        self._received.append(name)


def test_a_listener_method_is_called_as_long_as_its_object_exists(directory: Directory) -> None:
    received: list[str] = []
    listening = Listener(directory, received)
    directory.put_permission(BERT_IN_SHOP)
    assert received == ["bert"]
    del listening
    directory.remove_user("bert")
    assert received == ["bert"]


def test_a_deleted_listener_does_not_affect_the_others(directory: Directory) -> None:
    received: list[str] = []
    listening = Listener(directory, [])
    directory.on_change(received.append)
    del listening
    directory.put_permission(BERT_IN_SHOP)
    directory.put_permission(BERT_IN_SHOP)
    assert received == ["bert", "bert"]


def test_listeners_are_called_after_the_change(directory: Directory) -> None:
    seen: list[object] = []
    directory.on_change(lambda name: seen.append(directory.user(name)))
    directory.remove_user("bert")
    assert seen[-1] is None


def test_permissions_need_a_user(directory: Directory, log: list[Change]) -> None:
    del log[:]
    with pytest.raises(NotFound, match="no user 'unknown'"):
        directory.put_permission(PermissionRecord("/", "unknown", "", "", ""))
    with pytest.raises(NotFound, match="no user 'unknown'"):
        directory.remove_user("unknown")
    assert log == []


@pytest.mark.parametrize("pattern", ["(", "*", "(?=a)", "a{99999999999}"])
def test_a_malformed_pattern_is_refused_when_set(directory: Directory, log: list[Change], pattern: str) -> None:
    del log[:]
    with pytest.raises(PreconditionFailed, match="invalid regular expression"):
        directory.put_permission(PermissionRecord("/", "anna", ".*", pattern, ".*"))
    with pytest.raises(PreconditionFailed, match="invalid regular expression"):
        directory.put_topic_permission(TopicPermissionRecord("/", "anna", "amq.topic", ".*", pattern))
    assert log == []


def test_secrets_are_stored_with_the_users(directory: Directory, log: list[Change]) -> None:
    assert directory.secret("scram") is None
    directory.put_secret("scram", b"\x00\xff")
    assert log[-1] == Put(SecretRecord("scram", b"\x00\xff"))
    again = Directory(lambda change: None, compile_pattern)
    for change in log:
        again.apply(change)
    assert again.secret("scram") == b"\x00\xff"
    assert everything_in(again) == everything_in(directory)


# A user with many permissions


class Slices:
    """Runs a job step by step."""

    def __init__(self) -> None:
        self.jobs: list[Iterator[None]] = []

    def run(self, steps: Iterator[None]) -> None:
        next(steps)
        self.jobs.append(steps)

    def finish(self) -> None:
        for steps in self.jobs:
            for _ in steps:
                pass


@pytest.fixture
def slices(directory: Directory) -> Slices:
    slices = Slices()
    directory.run = slices.run
    return slices


def test_a_removed_user_has_no_rights_while_its_permissions_are_removed(
    directory: Directory, slices: Slices, log: list[Change]
) -> None:
    del log[:]
    directory.remove_user("anna")
    assert len(log) == 1
    assert directory.user("anna") is None
    assert directory.permission("shop", "anna") is None
    with pytest.raises(PreconditionFailed, match="user 'anna' is being deleted, try again later"):
        directory.put_user(ANNA)
    slices.finish()
    assert [change.kind for change in log if isinstance(change, Removed)] == [
        "permission",
        "permission",
        "topic_permission",
        "user",
    ]
    directory.put_user(ANNA)
    assert directory.permission("shop", "anna") is None
    assert directory.topic_permissions_of("shop", "anna") == []


def test_listeners_hear_of_a_removed_user_once_whatever_its_permissions(directory: Directory, slices: Slices) -> None:
    received: list[str] = []
    directory.on_change(received.append)
    directory.remove_user("anna")
    assert received == ["anna"]
    slices.finish()
    assert received == ["anna"]


def test_a_virtual_host_and_a_user_may_be_removed_at_the_same_time(
    directory: Directory, slices: Slices, log: list[Change]
) -> None:
    del log[:]
    directory.remove_user("anna")
    for _ in directory.removing_vhost("shop"):
        pass
    slices.finish()
    assert everything_in(directory) == [BERT]
    assert len([change for change in log if isinstance(change, Removed)]) == len(log) == 5
