"""Messages of an open step for a stream or an archive: prepared when they are published, appended with the step."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.kernel.journal.changes import Appended, Change, Changes, Lsn, Sealed
from gateway.kernel.journal.open_step import OpenStep
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.streams.append_run import AppendRun
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient
from gateway_memory import MemoryStore

COUNT = 3000


class ChangeStore(MemoryStore):
    """Records the changes of all steps."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []

    def append(self, changes: Changes) -> Lsn:
        self.changes += changes
        return super().append(changes)


@pytest.fixture
def store() -> ChangeStore:
    return ChangeStore()


@pytest.fixture
def broker(store: ChangeStore) -> MemoryBroker:
    return MemoryBroker(store)


def stream_of(broker: MemoryBroker, segment_size: int = 0) -> Stream:
    arguments = {"x-queue-type": "stream"}
    limit = {"x-stream-max-segment-size-bytes": segment_size} if segment_size else {}
    stream = broker.vhost.declare_queue("log", is_durable=True, arguments={**arguments, **limit})
    assert isinstance(stream, Stream)
    return stream


@contextmanager
def entered(broker: MemoryBroker, step: OpenStep) -> Iterator[None]:
    """Make changes in a step."""
    broker.kernel.journal.enter(step)
    yield
    broker.kernel.journal.leave()


def publish_in(broker: MemoryBroker, step: OpenStep, numbers: range, to: str = "log") -> None:
    """Publish numbered messages in a step; every third one has a filter value."""
    with entered(broker, step):
        for number in numbers:
            headers = {"x-stream-filter-value": f"v{number % 6}"} if number % 3 == 0 else None
            broker.publish(to, b"%d" % number, is_persistent=True, headers=headers)


def read(broker: MemoryBroker, stream: Stream, offset: str = "first", wanted: str = "") -> list[bytes]:
    """Return the bodies that a new consumer reads."""
    recipient = Recipient()
    asked = {"x-stream-filter": wanted} if wanted else {}
    recipient.consume(stream, prefetch=2 * COUNT, arguments={"x-stream-offset": offset, **asked})
    broker.advance(0)
    recipient.leave()
    return recipient.bodies


def test_messages_of_a_step_follow_those_of_other_publishers_whose_steps_come_first(
    broker: MemoryBroker, store: ChangeStore
) -> None:
    stream = stream_of(broker)
    step = broker.kernel.journal.open_step()
    publish_in(broker, step, range(COUNT))
    broker.publish("log", b"other", is_persistent=True)
    broker.commit()
    assert (len(stream), stream.durable_end) == (1, 1)
    broker.clock.advance(1)
    broker.kernel.journal.close_step(step)
    broker.commit()
    expected = [b"other", *(b"%d" % number for number in range(COUNT))]
    assert read(broker, stream) == expected
    appended = [change for change in store.changes if isinstance(change, Appended)]
    assert [change.offset for change in appended] == list(range(1 + COUNT))
    assert len({change.timestamp_ms for change in appended[1:]}) == 1
    assert appended[0].timestamp_ms < appended[1].timestamp_ms
    restarted = broker.crashed()
    log = restarted.vhost.queue("log")
    assert isinstance(log, Stream)
    assert read(restarted, log) == expected


@pytest.mark.parametrize("segment_size", [0, 500, 20_000])
def test_a_run_makes_the_same_segments_as_single_messages(segment_size: int) -> None:
    described = []
    for is_run in (False, True):
        broker = MemoryBroker(store := ChangeStore())
        stream = stream_of(broker, segment_size)
        broker.publish("log", b"first", is_persistent=True)
        step = broker.kernel.journal.open_step()
        if is_run:
            publish_in(broker, step, range(COUNT))
        broker.kernel.journal.close_step(step)
        if not is_run:
            for number in range(COUNT):
                headers = {"x-stream-filter-value": f"v{number % 6}"} if number % 3 == 0 else None
                broker.publish("log", b"%d" % number, is_persistent=True, headers=headers)
        broker.commit()
        sealed = [change for change in store.changes if isinstance(change, Sealed)]
        assert (len(sealed) > 1) == bool(segment_size)
        described.append((stream.segments, stream.size_bytes, read(broker, stream, wanted="v3")))
    assert described[0] == described[1]


def test_consumers_of_a_stream_read_all_messages_of_a_long_run(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    recipient = Recipient()
    recipient.consume(stream, prefetch=2 * COUNT, arguments={"x-stream-offset": "next"})
    broker.publish("log", b"before", is_persistent=True)
    step = broker.kernel.journal.open_step()
    publish_in(broker, step, range(COUNT))
    broker.kernel.journal.close_step(step)
    broker.publish("log", b"after", is_persistent=True)
    assert len(stream.log.tail.changes) < COUNT
    broker.commit()
    broker.advance(0)
    assert recipient.bodies == [b"before", *(b"%d" % number for number in range(COUNT)), b"after"]


def test_a_stream_that_was_deleted_meanwhile_gets_nothing(broker: MemoryBroker, store: ChangeStore) -> None:
    stream = stream_of(broker)
    step = broker.kernel.journal.open_step()
    publish_in(broker, step, range(10))
    broker.vhost.delete_queue(stream)
    broker.kernel.journal.close_step(step)
    broker.commit()
    assert not [change for change in store.changes if isinstance(change, Appended)]


def test_the_last_turn_makes_nothing_for_each_message(broker: MemoryBroker, store: ChangeStore) -> None:
    stream = stream_of(broker)
    journal = broker.kernel.journal
    step = journal.open_step()
    publish_in(broker, step, range(COUNT))
    run = step.appends[stream.log.id]
    assert isinstance(run, AppendRun)
    prepared = list(run.changes)
    assert len(prepared) == COUNT
    journal.close_step(step)
    broker.commit()
    appended = [change for change in store.changes if isinstance(change, Appended)]
    assert [id(change) for change in appended] == [id(change) for change in prepared]
    assert len(stream) == COUNT


def keep(broker: MemoryBroker, apply_to: str, pattern: str) -> None:
    """Archive exchanges or queues."""
    broker.kernel.put_policy(PolicyRecord("/", "keep", False, pattern, apply_to, 0, {"archive": True}))
    broker.advance(1)


@pytest.mark.parametrize(("apply_to", "pattern"), [("queues", "^q$"), ("exchanges", "^amq.fanout$")])
def test_an_archive_gets_the_messages_of_a_step_with_the_step(
    broker: MemoryBroker, apply_to: str, pattern: str
) -> None:
    vhost = broker.vhost
    vhost.bind(vhost.exchange("amq.fanout"), vhost.declare_queue("q", is_durable=True), "")
    keep(broker, apply_to, pattern)
    archive = next(iter(vhost.archives))
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        for _ in range(10):
            broker.publish("", b"m", exchange="amq.fanout", is_persistent=True)
    assert len(archive.log) == 0
    broker.publish("", b"other", exchange="amq.fanout", is_persistent=True)
    broker.commit()
    assert (archive.log.end, archive.log.durable_end) == (1, 1)
    broker.kernel.journal.close_step(step)
    broker.commit()
    assert (archive.log.end, archive.log.durable_end) == (11, 11)


def test_an_archive_that_gets_only_messages_of_a_step_is_sealed_in_time(broker: MemoryBroker) -> None:
    broker.vhost.declare_queue("q", is_durable=True)
    keep(broker, "queues", "^q$")
    archive = next(iter(broker.vhost.archives))
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("q", b"m", is_persistent=True)
    broker.kernel.journal.close_step(step)
    broker.commit()
    broker.advance(archive.log.segment_size)
    assert archive.log.segments[0].is_sealed


def test_a_stream_that_is_archived_archives_the_messages_of_a_step(broker: MemoryBroker) -> None:
    stream_of(broker)
    keep(broker, "streams", "^log$")
    archive = next(iter(broker.vhost.archives))
    step = broker.kernel.journal.open_step()
    publish_in(broker, step, range(10))
    assert len(archive.log) == 0
    broker.kernel.journal.close_step(step)
    assert len(archive.log) == 10


# ---- Runs of a turn -------------------------------------------------------------------------------------------------


def run_of(numbers: range, value: str = "") -> list[Message]:
    """Return messages with one header."""
    header = native_header(Properties(delivery_mode=2, headers={"x-stream-filter-value": value} if value else {}))
    return [Message("", "log", header, b"%d" % number) for number in numbers]


@pytest.mark.parametrize("value", ["", "v1"])
def test_a_run_is_appended_as_its_messages_would_be(value: str) -> None:
    """Records, counts, segments and what consumers read are the same, also where a segment ends."""
    found = []
    for is_run in (True, False):
        store = ChangeStore()
        broker = MemoryBroker(store)
        stream = stream_of(broker, segment_size=20_000)
        consumer = Recipient()
        consumer.consume(stream, prefetch=2 * COUNT, arguments={"x-stream-offset": "first"})
        at_once = 0
        for first in range(0, 400, 20):
            messages = run_of(range(first, first + 20), value if first % 40 else "")
            if is_run and stream.offer_run(messages):
                at_once += 1
            else:
                assert [stream.offer(message) for message in messages] == [None] * 20
            if first % 60 == 0:
                broker.commit()
                broker.advance(0)
        broker.commit()
        broker.advance(0)
        records = [_numbers(change) for change in store.changes if isinstance(change, Appended | Sealed)]
        found.append((records, stream.segments, stream.counters.publish, consumer.bodies, read(broker, stream)))
        assert 0 < at_once < 20 or not is_run
    assert found[0] == found[1]
    assert found[0][3] == [b"%d" % number for number in range(400)]


def _numbers(change: Appended | Sealed) -> object:
    if isinstance(change, Sealed):
        return change.segment
    return change.stream_id, change.offset, change.timestamp_ms, change.filter_value, change.message.body


def test_a_run_is_appended_one_by_one_if_a_feature_sees_each_message_or_it_is_long(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    assert not stream.offer_run(run_of(range(1000)))
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        assert not stream.offer_run(run_of(range(2)))
    stream.apply((Accepting(),))
    assert not stream.offer_run(run_of(range(2)))
    assert len(stream) == 0


class Accepting(QueueFeature):
    """A feature that has to see each message."""

    def accepted(self, message: Message, position: int | None) -> None:
        """Do nothing."""
