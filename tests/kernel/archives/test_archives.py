"""Archives: a policy archives each message once, covered by its confirm, until it is in a file."""

from collections.abc import Sequence

import pytest

from gateway.kernel.archives.archive import Archive, ArchiveRules
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.journal.records.topology import ArchiveRecord, PolicyRecord
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import decode_content
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of

DAY_S = 86_400
ORIGIN = Origin("client", 1, "guest", "amqp091")
OTHER = Origin("other", 1, "guest", "amqp091")


def policy(pattern: str = ".*", apply_to: str = "all", **definition: Value) -> PolicyRecord:
    return PolicyRecord("/", "keep", False, pattern, apply_to, 0, definition or {"archive": True})


class ArchiveRig:
    """A broker with archives, and the sealed segments and events it reported."""

    def __init__(self, rules: ArchiveRules | None = None, broker: MemoryBroker | None = None) -> None:
        self.broker = broker or MemoryBroker()
        self.broker.kernel.archive_context.rules = rules or ArchiveRules()
        self.broker.kernel.archive_context.on_sealed = lambda archive, segment: self.sealed.append((archive, segment))
        self.sealed: list[tuple[Archive, StreamSegment]] = []
        self.events: list[Event] = []
        self.broker.kernel.events.subscribe(self.events.append)

    def put_policy(self, record: PolicyRecord | None = None) -> None:
        self.broker.kernel.put_policy(record or policy())
        self.broker.commit()

    def publish(self, body: bytes, exchange: str = "", key: str = "q", origin: Origin | None = ORIGIN) -> None:
        vhost = self.broker.vhost
        vhost.publish(vhost.exchange(exchange), Message(exchange, key, header_of(), body), origin)

    @property
    def archives(self) -> dict[tuple[str, str], Archive]:
        return {(each.record.source, each.record.name): each for each in self.broker.vhost.archives}

    def archived(self, source: str = "queue", name: str = "q") -> list[bytes]:
        """Return the bodies of the durable messages in an archive."""
        self.broker.commit()
        log = self.archives[source, name].log
        bodies: list[bytes] = []
        while (chunks := log.read(log.first + len(bodies), 1 << 20)) is not None:
            bodies += [decode_content(content).body for _, _, _, content in entries(chunks, log.first + len(bodies))]
        return bodies

    def event_names(self) -> list[str]:
        return [event.name for event in self.events if event.name.startswith("archive.")]


def queue(rig: ArchiveRig, name: str = "q", **arguments: Value) -> None:
    asked = {f"x-{argument.replace('_', '-')}": value for argument, value in arguments.items()}
    rig.broker.vhost.declare_queue(name, is_durable=True, arguments=asked)


@pytest.fixture
def rig() -> ArchiveRig:
    return ArchiveRig()


# ---- Archived messages ----------------------------------------------------------------------------------------------


def test_a_queue_archives_messages_from_the_moment_its_policy_is_set(rig: ArchiveRig) -> None:
    queue(rig)
    rig.publish(b"before")
    rig.put_policy()
    rig.publish(b"one")
    rig.publish(b"two")
    assert rig.archived() == [b"one", b"two"]


def test_a_queue_declared_under_a_policy_archives_every_message(rig: ArchiveRig) -> None:
    rig.put_policy()
    queue(rig)
    rig.publish(b"one")
    assert rig.archived() == [b"one"]


def test_an_argument_of_a_client_creates_no_archive(rig: ArchiveRig) -> None:
    queue(rig, archive=True)
    assert rig.archives == {}


def test_an_exchange_archives_every_publish_whatever_its_route(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^amq.fanout$", "exchanges"))
    for name in ("a", "b"):
        queue(rig, name)
    vhost = rig.broker.vhost
    rig.publish(b"unroutable", "amq.fanout")
    for name in ("a", "b"):
        vhost.bind(vhost.exchange("amq.fanout"), vhost.queue(name), "")
    rig.publish(b"to both", "amq.fanout")
    assert rig.archived("exchange", "amq.fanout") == [b"unroutable", b"to both"]
    assert list(rig.archives) == [("exchange", "amq.fanout")]


def test_an_exchange_bound_to_another_archives_the_messages_routed_to_it(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^amq.topic$", "exchanges"))
    vhost = rig.broker.vhost
    vhost.bind(vhost.exchange("amq.fanout"), vhost.exchange("amq.topic"), "#")
    for key in ("a", "a", "b"):
        rig.publish(key.encode(), "amq.fanout", key)
    assert rig.archived("exchange", "amq.topic") == [b"a", b"a", b"b"]


def test_a_message_with_several_routing_keys_is_archived_once_per_exchange(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^amq.direct$", "exchanges"))
    vhost = rig.broker.vhost
    message = Message("amq.direct", "a", header_of(sender_keys=("b", "c")), b"once")
    vhost.publish(vhost.exchange("amq.direct"), message, ORIGIN)
    assert rig.archived("exchange", "amq.direct") == [b"once"]


def test_a_delayed_message_is_archived_when_published_and_not_when_released(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^late$", "exchanges"))
    vhost = rig.broker.vhost
    vhost.declare_exchange("late", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"})
    message = Message("late", "k", header_of(headers={"x-delay": 1000}), b"late")
    vhost.publish(vhost.exchange("late"), message, ORIGIN)
    assert rig.archived("exchange", "late") == [b"late"]
    rig.broker.advance(2)
    assert rig.archived("exchange", "late") == [b"late"]


def test_a_requeued_message_is_not_archived_again(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    rig.publish(b"one")
    target = rig.broker.vhost.queue("q")
    for _ in range(3):
        entry = target.take()
        assert entry is not None
        target.settle(entry, DeliveryOutcome.REQUEUED)
    assert rig.archived() == [b"one"]


def test_a_refused_message_is_not_archived(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    queue(rig, max_length=1, overflow="reject-publish")
    rig.publish(b"one")
    rig.publish(b"refused")
    assert rig.archived() == [b"one"]


def test_dead_letters_are_archived_by_their_dead_letter_exchange(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^amq.fanout$", "exchanges"))
    queue(rig, max_length=1, dead_letter_exchange="amq.fanout")
    rig.publish(b"dies")
    rig.publish(b"lives")
    assert rig.archived("exchange", "amq.fanout") == [b"dies"]


def test_a_stream_archives_its_messages(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    queue(rig, queue_type="stream")
    rig.publish(b"one")
    assert rig.archived() == [b"one"]


# ---- Confirms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_confirm_of_a_message_that_only_the_archive_stores_waits_for_the_disk(is_bound: bool) -> None:
    rig = ArchiveRig()
    rig.put_policy(policy("^amq.fanout$", "exchanges"))
    vhost, answers = rig.broker.vhost, []
    if is_bound:
        vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_queue("transient"), "")
    rig.broker.commit()
    confirms = Confirms(rig.broker.kernel.journal, lambda number, _many, _good: answers.append(number))
    message = Message("amq.fanout", "", header_of(), b"one")
    vhost.publish(vhost.exchange("amq.fanout"), message, ORIGIN)
    confirms.published(True, message.id != 0)
    rig.broker.end_turn()
    assert answers == []
    rig.broker.commit()
    assert answers == [1]


# ---- Sealing of segments --------------------------------------------------------------------------------------------


def test_a_segment_is_sealed_when_it_is_large_enough() -> None:
    rig = ArchiveRig(ArchiveRules(segment_size=1000))
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    for _ in range(5):
        rig.publish(bytes(400))
        rig.broker.commit()
    assert [(segment.first, segment.end) for _, segment in rig.sealed] == [(0, 2), (2, 4)]


def test_a_segment_is_sealed_when_it_is_old_enough_and_not_before(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    rig.publish(b"one")
    rig.broker.commit()
    rig.broker.advance(299)
    rig.publish(b"two")
    rig.broker.commit()
    assert rig.sealed == []
    rig.broker.advance(1)
    rig.broker.commit()
    [(_, segment)] = rig.sealed
    assert (segment.first, segment.end) == (0, 2)
    rig.broker.advance(2 * DAY_S)
    rig.broker.commit()
    assert len(rig.sealed) == 1  # no message was published since


def test_a_segment_is_sealed_at_its_age_after_the_clock_was_set_back(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    rig.publish(b"one")
    rig.broker.commit()
    rig.broker.clock.set_back(1000 * DAY_S)
    for count in (1, 2):
        rig.broker.advance(300)
        rig.broker.commit()
        assert len(rig.sealed) == count
        rig.publish(b"of the past")  # stamped with the time of the message before
        rig.broker.commit()
        rig.broker.advance(299)
        rig.broker.commit()
        assert len(rig.sealed) == count


def test_a_segment_ends_with_its_day(rig: ArchiveRig) -> None:
    clock = rig.broker.clock
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    rig.broker.advance(DAY_S - clock.wall_ms() / 1000 % DAY_S - 10)
    rig.publish(b"one")
    rig.broker.commit()
    rig.broker.advance(9.5)
    rig.broker.commit()
    assert rig.sealed == []
    rig.broker.advance(0.5)
    rig.broker.commit()
    assert len(rig.sealed) == 1


def test_a_segment_is_reported_only_after_its_seal_is_durable(rig: ArchiveRig) -> None:
    """Otherwise a file could contain a segment that is continued after a restart, so messages would be in two files."""
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    rig.publish(b"one")
    rig.broker.commit()
    rig.broker.advance(300)
    assert rig.sealed == []
    again = ArchiveRig(broker=rig.broker.crashed())
    assert [segment.is_sealed for segment in again.archives["queue", "q"].log.segments] == [False]


# ---- In files -------------------------------------------------------------------------------------------------------


def sealed(rig: ArchiveRig, bodies: Sequence[bytes] = (b"one",)) -> Archive:
    """Return the archive of ``q`` with one sealed segment of these messages."""
    rig.put_policy(policy("^q$", "queues"))
    queue(rig)
    for body in bodies:
        rig.publish(body)
    rig.broker.commit()
    rig.broker.advance(300)
    rig.broker.commit()
    return rig.archives["queue", "q"]


def test_messages_in_a_file_are_removed_from_the_log(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    assert (len(archive.waiting), len(archive.log)) == (1, 1)
    assert archive.lag_ms == 300_000
    archive.filed(archive.waiting[0].end)
    assert (len(archive.waiting), len(archive.log), archive.lag_ms) == (0, 0, 0)


def test_after_a_crash_only_messages_that_are_not_in_a_file_are_waiting(rig: ArchiveRig) -> None:
    archive = sealed(rig, [b"one", b"two"])
    archive.filed(2)
    rig.publish(b"three")
    rig.broker.commit()
    after = ArchiveRig(broker=rig.broker.crashed())
    assert after.archived() == [b"three"]
    assert after.archives["queue", "q"].log.first == 2


def test_a_crash_before_the_truncation_is_durable_restores_the_same_segment(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    [waiting] = archive.waiting
    archive.filed(1)  # not durable
    after = ArchiveRig(broker=rig.broker.crashed()).archives["queue", "q"]
    assert [(segment.first, segment.end) for segment in after.waiting] == [(waiting.first, waiting.end)]
    assert after.record == archive.record  # so the file has the same name


def test_an_archive_of_a_predeclared_exchange_survives_a_restart(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^amq.topic$", "exchanges"))
    rig.publish(b"one", "amq.topic")
    rig.broker.commit()
    after = ArchiveRig(broker=rig.broker.crashed())
    after.publish(b"two", "amq.topic")
    assert after.archived("exchange", "amq.topic") == [b"one", b"two"]


# ---- Retirement -----------------------------------------------------------------------------------------------------


def test_an_archive_without_a_policy_is_removed_once_all_of_it_is_in_files(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    rig.publish(b"more")
    rig.broker.commit()
    rig.broker.kernel.remove_policy(policy("^q$", "queues"))
    rig.publish(b"not archived")
    rig.broker.advance(1)
    rig.broker.commit()
    assert [(segment.first, segment.end) for segment in archive.waiting] == [(0, 1), (1, 2)]
    archive.filed(1)
    assert rig.archives
    archive.filed(2)
    assert rig.archives == {}
    rig.broker.commit()
    assert ArchiveRig(broker=rig.broker.crashed()).archives == {}


def test_a_queue_declared_again_after_its_deletion_gets_a_new_archive(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    vhost = rig.broker.vhost
    vhost.delete_queue(vhost.queue("q"))
    rig.broker.advance(1)
    archive.filed(1)
    rig.broker.advance(1)
    queue(rig)
    rig.publish(b"new")
    assert rig.archived() == [b"new"]
    assert rig.archives["queue", "q"].record.since_ms != archive.record.since_ms


def test_a_queue_keeps_its_archive_when_its_policy_changes(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    rig.put_policy(policy("^q$", "queues", archive=True, **{"max-length": 10}))
    rig.broker.advance(1)
    assert rig.archives["queue", "q"] is archive
    assert not archive.is_retired
    assert rig.event_names() == ["archive.opened"]


def test_an_archive_without_its_queue_retires_after_a_restart(rig: ArchiveRig) -> None:
    rig.put_policy(policy("^q$", "queues"))
    rig.broker.vhost.declare_queue("q")  # transient
    rig.publish(b"one")
    rig.broker.commit()
    after = ArchiveRig(broker=rig.broker.crashed())
    after.broker.commit()
    archive = after.archives["queue", "q"]
    assert archive.is_retired
    archive.filed(1)
    assert after.archives == {}


def test_deleting_a_virtual_host_deletes_its_archives(rig: ArchiveRig) -> None:
    archive = sealed(rig)
    rig.broker.kernel.delete_vhost("/")
    assert not archive.waiting
    rig.broker.commit()
    rig.broker.advance(DAY_S)
    assert ArchiveRig(broker=rig.broker.crashed()).archives == {}


# ---- Backpressure ---------------------------------------------------------------------------------------------------


def full_archive() -> tuple[ArchiveRig, Archive]:
    rig = ArchiveRig(ArchiveRules(segment_size=500, most_waiting=1000))
    rig.put_policy(policy("^q$", "queues"))
    for name in ("q", "free"):
        queue(rig, name)
    for _ in range(4):
        rig.publish(bytes(600))
        rig.broker.commit()
    return rig, rig.archives["queue", "q"]


def test_only_publishers_into_a_full_archive_are_blocked() -> None:
    rig, archive = full_archive()
    held = rig.broker.kernel.archive_context.blocked_publishers
    assert archive.is_full
    rig.publish(b"", key="free", origin=OTHER)
    rig.publish(b"", key="q", origin=None)  # no connection that could be blocked
    assert "other" not in held
    rig.publish(b"", key="q", origin=OTHER)
    assert "other" in held
    assert rig.event_names()[-1] == "archive.full"


def test_publishers_are_unblocked_once_half_of_the_archive_is_in_files() -> None:
    rig, archive = full_archive()
    held = rig.broker.kernel.archive_context.blocked_publishers
    rig.publish(b"")
    resumed: list[str] = []
    held.on_change = resumed.append
    while archive.waiting:
        was_full, end = archive.is_full, archive.waiting[0].end
        archive.filed(end)
        if was_full and archive.is_full:
            assert "client" in held
    assert "client" not in held
    assert resumed == ["client"]
    assert rig.event_names()[-1] == "archive.has_room"


def test_a_dead_letter_in_a_full_archive_blocks_no_publisher() -> None:
    rig, _ = full_archive()
    vhost = rig.broker.vhost
    queue(rig, "short", max_length=1, dead_letter_exchange="", dead_letter_routing_key="q")
    for _ in range(3):
        vhost.publish(vhost.default_exchange, Message("", "short", header_of(), b""), OTHER)
    assert "other" not in rig.broker.kernel.archive_context.blocked_publishers


def typed(table: str) -> PolicyRecord:
    return policy(apply_to="queues", archive=True, **{"archive-table": table})


def test_a_policy_selects_the_typed_table_of_messages_from_then_on() -> None:
    rig = ArchiveRig()
    rig.broker.kernel.archive_context.tables = frozenset({"orders", "bills"})
    queue(rig)
    rig.put_policy()
    rig.publish(b"plain")
    for table in ("orders", "bills"):
        rig.put_policy(typed(table))
        rig.publish(table.encode())
    rig.put_policy()
    rig.publish(b"plain again")
    archive = rig.archives["queue", "q"]
    assert [archive.record.table_of(offset) for offset in range(4)] == ["", "orders", "bills", ""]
    rig.broker.commit()
    rig.broker.commit()
    assert [(segment.first, segment.end) for _, segment in rig.sealed] == [(0, 1), (1, 2), (2, 3)], "one table each"


def test_archives_that_nothing_can_write_are_refused_with_the_reason() -> None:
    rig = ArchiveRig()
    queue(rig)
    rig.broker.kernel.archive_context.tables = None
    for put in (
        rig.put_policy,
        lambda: rig.put_policy(typed("orders")),
        lambda: rig.broker.kernel.trace_to_table("/", True),
    ):
        with pytest.raises(
            PreconditionFailed, match="archives need the Python library pyarrow, which is not installed"
        ):
            put()
    rig.put_policy(policy(archive=False))
    rig.broker.kernel.trace_to_table("/", False)
    assert list(rig.archives) == []


def test_a_restart_keeps_the_typed_table_of_each_message() -> None:
    rig = ArchiveRig()
    rig.broker.kernel.archive_context.tables = frozenset({"orders"})
    queue(rig)
    rig.put_policy()
    rig.publish(b"plain")
    rig.put_policy(typed("orders"))
    rig.publish(b"typed")
    rig.broker.commit()
    again = ArchiveRig(broker=rig.broker.crashed())
    record = again.archives["queue", "q"].record
    assert [record.table_of(offset) for offset in range(3)] == ["", "orders", "orders"]
    again.publish(b"more")
    assert again.archived() == [b"plain", b"typed", b"more"]


def test_tables_of_messages_that_are_filed_are_forgotten() -> None:
    rig = ArchiveRig()
    rig.broker.kernel.archive_context.tables = frozenset({"a", "b"})
    queue(rig)
    for number in range(20):
        rig.put_policy(typed("ab"[number % 2]))
        rig.publish(b"x")
        rig.broker.commit()
        rig.archives["queue", "q"].filed(number)
    assert len(rig.archives["queue", "q"].record.tables) <= 4


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (
            {"archive": True, "archive-table": "other"},
            "no schema in archive.schemas describes the archive-table 'other'",
        ),
        ({"archive": True, "archive-table": 5}, "is not a valid archive table"),
        ({"archive-table": "orders"}, "archive-table has no effect without archive"),
        ({"archive": False, "archive-table": "orders"}, "archive-table has no effect without archive"),
    ],
)
def test_a_policy_with_a_typed_table_that_has_no_effect_is_refused(definition: dict[str, Value], reason: str) -> None:
    rig = ArchiveRig()
    rig.broker.kernel.archive_context.tables = frozenset({"orders"})
    with pytest.raises(PreconditionFailed, match=reason):
        rig.put_policy(PolicyRecord("/", "keep", False, ".*", "queues", 0, definition))


def test_the_archive_of_an_exchange_has_a_typed_table() -> None:
    rig = ArchiveRig()
    rig.broker.kernel.archive_context.tables = frozenset({"orders"})
    rig.put_policy(
        PolicyRecord("/", "keep", False, "amq.topic", "exchanges", 0, {"archive": True, "archive-table": "orders"})
    )
    assert rig.archives["exchange", "amq.topic"].table == "orders"


def test_an_archive_of_an_earlier_version_has_no_typed_table() -> None:
    fields: dict[str, Value] = {"vhost": "/", "source": "queue", "name": "q", "id": 1, "since_ms": 5}
    assert ArchiveRecord.from_fields(fields, 1).table_of(7) == ""
