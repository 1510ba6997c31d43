"""What a policy keeps for good: every message once, covered by its confirm, until it is in a file."""

from collections.abc import Sequence

import pytest

from gateway.kernel.archives.archive import Archive, ArchiveRules
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.journal.confirms import Confirms
from gateway.kernel.journal.records import PolicyRecord
from gateway.kernel.messages.chunks import entries
from gateway.kernel.messages.contents import decode_content
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.queue import DeliveryOutcome
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of

DAY_S = 86_400
ORIGIN = Origin("client", 1, "guest", "amqp091")
OTHER = Origin("other", 1, "guest", "amqp091")


def policy(pattern: str = ".*", apply_to: str = "all", **definition: Value) -> PolicyRecord:
    return PolicyRecord("/", "keep", False, pattern, apply_to, 0, definition or {"archive": True})


class Keeping:
    """A broker that keeps what its policy says, and what it was told about it."""

    def __init__(self, rules: ArchiveRules | None = None, broker: MemoryBroker | None = None) -> None:
        self.broker = broker or MemoryBroker()
        self.broker.kernel.archive_context.rules = rules or ArchiveRules()
        self.broker.kernel.archive_context.on_sealed = lambda archive, segment: self.sealed.append((archive, segment))
        self.sealed: list[tuple[Archive, StreamSegment]] = []
        self.events: list[Event] = []
        self.broker.kernel.events.subscribe(self.events.append)

    def order(self, record: PolicyRecord | None = None) -> None:
        self.broker.kernel.put_policy(record or policy())
        self.broker.commit()

    def publish(self, body: bytes, exchange: str = "", key: str = "q", origin: Origin | None = ORIGIN) -> None:
        vhost = self.broker.vhost
        vhost.publish(vhost.exchange(exchange), Message(exchange, key, header_of(), body), origin)

    @property
    def archives(self) -> dict[tuple[str, str], Archive]:
        return {(each.record.source, each.record.name): each for each in self.broker.vhost.archives}

    def kept(self, source: str = "queue", name: str = "q") -> list[bytes]:
        """Return the bodies that an archive holds, durable ones."""
        self.broker.commit()
        log = self.archives[source, name].log
        bodies: list[bytes] = []
        while (chunks := log.read(log.first + len(bodies), 1 << 20)) is not None:
            bodies += [decode_content(content).body for _, _, _, content in entries(chunks, log.first + len(bodies))]
        return bodies

    def names(self) -> list[str]:
        return [event.name for event in self.events if event.name.startswith("archive.")]


def queue(keeping: Keeping, name: str = "q", **arguments: Value) -> None:
    asked = {f"x-{argument.replace('_', '-')}": value for argument, value in arguments.items()}
    keeping.broker.vhost.declare_queue(name, is_durable=True, arguments=asked)


@pytest.fixture
def keeping() -> Keeping:
    return Keeping()


# ---- What is kept ---------------------------------------------------------------------------------------------------


def test_a_queue_keeps_what_it_takes_from_the_moment_its_policy_is_there(keeping: Keeping) -> None:
    queue(keeping)
    keeping.publish(b"before")
    keeping.order()
    keeping.publish(b"one")
    keeping.publish(b"two")
    assert keeping.kept() == [b"one", b"two"]


def test_a_queue_that_is_declared_under_a_policy_keeps_everything(keeping: Keeping) -> None:
    keeping.order()
    queue(keeping)
    keeping.publish(b"one")
    assert keeping.kept() == [b"one"]


def test_an_argument_of_a_client_keeps_nothing(keeping: Keeping) -> None:
    queue(keeping, archive=True)
    assert keeping.archives == {}


def test_an_exchange_keeps_what_is_published_to_it_wherever_it_goes(keeping: Keeping) -> None:
    keeping.order(policy("^amq.fanout$", "exchanges"))
    for name in ("a", "b"):
        queue(keeping, name)
    vhost = keeping.broker.vhost
    keeping.publish(b"to nobody", "amq.fanout")
    for name in ("a", "b"):
        vhost.bind(vhost.exchange("amq.fanout"), vhost.queue(name), "")
    keeping.publish(b"to both", "amq.fanout")
    assert keeping.kept("exchange", "amq.fanout") == [b"to nobody", b"to both"]
    assert list(keeping.archives) == [("exchange", "amq.fanout")]


def test_an_exchange_behind_another_keeps_what_comes_by(keeping: Keeping) -> None:
    keeping.order(policy("^amq.topic$", "exchanges"))
    vhost = keeping.broker.vhost
    vhost.bind(vhost.exchange("amq.fanout"), vhost.exchange("amq.topic"), "#")
    for key in ("a", "a", "b"):
        keeping.publish(key.encode(), "amq.fanout", key)
    assert keeping.kept("exchange", "amq.topic") == [b"a", b"a", b"b"]


def test_a_message_for_several_keys_is_kept_once_by_each(keeping: Keeping) -> None:
    keeping.order(policy("^amq.direct$", "exchanges"))
    vhost = keeping.broker.vhost
    message = Message("amq.direct", "a", header_of(sender_keys=("b", "c")), b"once")
    vhost.publish(vhost.exchange("amq.direct"), message, ORIGIN)
    assert keeping.kept("exchange", "amq.direct") == [b"once"]


def test_what_an_exchange_holds_back_is_kept_when_it_comes_and_not_again(keeping: Keeping) -> None:
    keeping.order(policy("^late$", "exchanges"))
    vhost = keeping.broker.vhost
    vhost.declare_exchange("late", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"})
    message = Message("late", "k", header_of(headers={"x-delay": 1000}), b"late")
    vhost.publish(vhost.exchange("late"), message, ORIGIN)
    assert keeping.kept("exchange", "late") == [b"late"]
    keeping.broker.advance(2)
    assert keeping.kept("exchange", "late") == [b"late"]


def test_what_comes_back_to_a_queue_is_not_kept_again(keeping: Keeping) -> None:
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    keeping.publish(b"one")
    place = keeping.broker.vhost.queue("q")
    for _ in range(3):
        entry = place.take()
        assert entry is not None
        place.settle(entry, DeliveryOutcome.REQUEUED)
    assert keeping.kept() == [b"one"]


def test_what_a_queue_refuses_is_not_kept(keeping: Keeping) -> None:
    keeping.order(policy("^q$", "queues"))
    queue(keeping, max_length=1, overflow="reject-publish")
    keeping.publish(b"one")
    keeping.publish(b"refused")
    assert keeping.kept() == [b"one"]


def test_dead_letters_are_kept_by_the_exchange_they_go_to(keeping: Keeping) -> None:
    keeping.order(policy("^amq.fanout$", "exchanges"))
    queue(keeping, max_length=1, dead_letter_exchange="amq.fanout")
    keeping.publish(b"dies")
    keeping.publish(b"lives")
    assert keeping.kept("exchange", "amq.fanout") == [b"dies"]


def test_a_stream_keeps_what_it_takes(keeping: Keeping) -> None:
    keeping.order(policy("^q$", "queues"))
    queue(keeping, queue_type="stream")
    keeping.publish(b"one")
    assert keeping.kept() == [b"one"]


# ---- Confirms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_confirm_of_a_message_that_only_the_archive_stores_waits_for_the_disk(is_bound: bool) -> None:
    keeping = Keeping()
    keeping.order(policy("^amq.fanout$", "exchanges"))
    vhost, answers = keeping.broker.vhost, []
    if is_bound:
        vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_queue("transient"), "")
    keeping.broker.commit()
    confirms = Confirms(keeping.broker.kernel.journal, lambda number, _many, _good: answers.append(number))
    message = Message("amq.fanout", "", header_of(), b"one")
    vhost.publish(vhost.exchange("amq.fanout"), message, ORIGIN)
    confirms.published(True, message.id != 0)
    keeping.broker.end_turn()
    confirms.end_turn()
    assert answers == []
    keeping.broker.commit()
    assert answers == [1]


# ---- When a segment is complete -------------------------------------------------------------------------------------


def test_a_segment_is_sealed_when_it_is_large_enough() -> None:
    keeping = Keeping(ArchiveRules(segment_size=1000))
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    for _ in range(5):
        keeping.publish(bytes(400))
        keeping.broker.commit()
    assert [(segment.first, segment.end) for _, segment in keeping.sealed] == [(0, 2), (2, 4)]


def test_a_segment_is_sealed_when_it_is_old_enough_and_not_before(keeping: Keeping) -> None:
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    keeping.publish(b"one")
    keeping.broker.commit()
    keeping.broker.advance(299)
    keeping.publish(b"two")
    keeping.broker.commit()
    assert keeping.sealed == []
    keeping.broker.advance(1)
    keeping.broker.commit()
    [(_, segment)] = keeping.sealed
    assert (segment.first, segment.end) == (0, 2)
    keeping.broker.advance(2 * DAY_S)
    keeping.broker.commit()
    assert len(keeping.sealed) == 1  # nothing came since


def test_a_segment_ends_with_its_day(keeping: Keeping) -> None:
    clock = keeping.broker.clock
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    keeping.broker.advance(DAY_S - clock.wall_ms() / 1000 % DAY_S - 10)
    keeping.publish(b"one")
    keeping.broker.commit()
    keeping.broker.advance(9.5)
    keeping.broker.commit()
    assert keeping.sealed == []
    keeping.broker.advance(0.5)
    keeping.broker.commit()
    assert len(keeping.sealed) == 1


def test_nobody_hears_of_a_segment_before_it_is_sealed_for_good(keeping: Keeping) -> None:
    """Else it could be in a file while a restart goes on writing it, and so be in two."""
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    keeping.publish(b"one")
    keeping.broker.commit()
    keeping.broker.advance(300)
    assert keeping.sealed == []
    again = Keeping(broker=keeping.broker.crashed())
    assert [segment.is_sealed for segment in again.archives["queue", "q"].log.segments] == [False]


# ---- In files -------------------------------------------------------------------------------------------------------


def sealed(keeping: Keeping, bodies: Sequence[bytes] = (b"one",)) -> Archive:
    """Return the archive of ``q`` with one sealed segment of these messages."""
    keeping.order(policy("^q$", "queues"))
    queue(keeping)
    for body in bodies:
        keeping.publish(body)
    keeping.broker.commit()
    keeping.broker.advance(300)
    keeping.broker.commit()
    return keeping.archives["queue", "q"]


def test_what_is_in_a_file_is_let_go(keeping: Keeping) -> None:
    archive = sealed(keeping)
    assert (len(archive.waiting), len(archive.log)) == (1, 1)
    assert archive.lag_ms == 300_000
    archive.filed(archive.waiting[0].end)
    assert (len(archive.waiting), len(archive.log), archive.lag_ms) == (0, 0, 0)


def test_what_was_not_filed_waits_after_a_crash_and_what_was_does_not(keeping: Keeping) -> None:
    archive = sealed(keeping, [b"one", b"two"])
    archive.filed(2)
    keeping.publish(b"three")
    keeping.broker.commit()
    after = Keeping(broker=keeping.broker.crashed())
    assert after.kept() == [b"three"]
    assert after.archives["queue", "q"].log.first == 2


def test_a_crash_before_the_log_let_go_lets_the_same_segment_wait_again(keeping: Keeping) -> None:
    archive = sealed(keeping)
    [waiting] = archive.waiting
    archive.filed(1)  # not durable
    after = Keeping(broker=keeping.broker.crashed()).archives["queue", "q"]
    assert [(segment.first, segment.end) for segment in after.waiting] == [(waiting.first, waiting.end)]
    assert after.record == archive.record  # so the file has the same name


def test_a_policy_of_an_exchange_that_was_always_there_survives_a_restart(keeping: Keeping) -> None:
    keeping.order(policy("^amq.topic$", "exchanges"))
    keeping.publish(b"one", "amq.topic")
    keeping.broker.commit()
    after = Keeping(broker=keeping.broker.crashed())
    after.publish(b"two", "amq.topic")
    assert after.kept("exchange", "amq.topic") == [b"one", b"two"]


# ---- The end --------------------------------------------------------------------------------------------------------


def test_without_its_policy_an_archive_goes_once_all_of_it_is_in_files(keeping: Keeping) -> None:
    archive = sealed(keeping)
    keeping.publish(b"more")
    keeping.broker.commit()
    keeping.broker.kernel.remove_policy(policy("^q$", "queues"))
    keeping.publish(b"not kept")
    keeping.broker.advance(1)
    keeping.broker.commit()
    assert [(segment.first, segment.end) for segment in archive.waiting] == [(0, 1), (1, 2)]
    archive.filed(1)
    assert keeping.archives
    archive.filed(2)
    assert keeping.archives == {}
    keeping.broker.commit()
    assert Keeping(broker=keeping.broker.crashed()).archives == {}


def test_a_deleted_queue_gives_its_archive_up_and_one_of_its_name_gets_another(keeping: Keeping) -> None:
    archive = sealed(keeping)
    vhost = keeping.broker.vhost
    vhost.delete_queue(vhost.queue("q"))
    keeping.broker.advance(1)
    archive.filed(1)
    keeping.broker.advance(1)
    queue(keeping)
    keeping.publish(b"new")
    assert keeping.kept() == [b"new"]
    assert keeping.archives["queue", "q"].record.since_ms != archive.record.since_ms


def test_a_queue_that_is_equipped_anew_keeps_its_archive(keeping: Keeping) -> None:
    archive = sealed(keeping)
    keeping.order(policy("^q$", "queues", archive=True, **{"max-length": 10}))
    keeping.broker.advance(1)
    assert keeping.archives["queue", "q"] is archive
    assert not archive.is_retired
    assert keeping.names() == ["archive.opened"]


def test_an_archive_whose_queue_is_gone_retires_after_a_restart(keeping: Keeping) -> None:
    keeping.order(policy("^q$", "queues"))
    keeping.broker.vhost.declare_queue("q")  # gone with the node
    keeping.publish(b"one")
    keeping.broker.commit()
    after = Keeping(broker=keeping.broker.crashed())
    after.broker.commit()
    archive = after.archives["queue", "q"]
    assert archive.is_retired
    archive.filed(1)
    assert after.archives == {}


def test_a_deleted_virtual_host_takes_its_archives_along(keeping: Keeping) -> None:
    archive = sealed(keeping)
    keeping.broker.kernel.delete_vhost("/")
    assert not archive.waiting
    keeping.broker.commit()
    keeping.broker.advance(DAY_S)
    assert Keeping(broker=keeping.broker.crashed()).archives == {}


# ---- Backpressure ---------------------------------------------------------------------------------------------------


def full() -> tuple[Keeping, Archive]:
    keeping = Keeping(ArchiveRules(segment_size=500, most_waiting=1000))
    keeping.order(policy("^q$", "queues"))
    for name in ("q", "free"):
        queue(keeping, name)
    for _ in range(4):
        keeping.publish(bytes(600))
        keeping.broker.commit()
    return keeping, keeping.archives["queue", "q"]


def test_who_publishes_into_a_full_archive_is_held_back_and_nobody_else() -> None:
    keeping, archive = full()
    held = keeping.broker.kernel.archive_context.blocked_publishers
    assert archive.is_full
    keeping.publish(b"", key="free", origin=OTHER)
    keeping.publish(b"", key="q", origin=None)  # somebody whom nobody can hold back
    assert "other" not in held
    keeping.publish(b"", key="q", origin=OTHER)
    assert "other" in held
    assert keeping.names()[-1] == "archive.full"


def test_they_go_on_once_half_of_it_is_in_files() -> None:
    keeping, archive = full()
    held = keeping.broker.kernel.archive_context.blocked_publishers
    keeping.publish(b"")
    told: list[str] = []
    held.on_change = told.append
    while archive.waiting:
        was_full, end = archive.is_full, archive.waiting[0].end
        archive.filed(end)
        if was_full and archive.is_full:
            assert "client" in held
    assert "client" not in held
    assert told == ["client"]
    assert keeping.names()[-1] == "archive.has_room"


def test_a_dead_letter_that_somebody_else_caused_is_nobodys_fault() -> None:
    keeping, _ = full()
    vhost = keeping.broker.vhost
    queue(keeping, "short", max_length=1, dead_letter_exchange="", dead_letter_routing_key="q")
    for _ in range(3):
        vhost.publish(vhost.default_exchange, Message("", "short", header_of(), b""), OTHER)
    assert "other" not in keeping.broker.kernel.archive_context.blocked_publishers
