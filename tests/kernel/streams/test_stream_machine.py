"""Stateful test of a stream: offsets have no gaps, messages never change, and each reader gets what matches.

The model is a list of published messages. Readers have filters, names and small credits, settle in any order and
disconnect. Segments are so small that they are sealed and truncated all the time; the broker crashes.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient
from tests.effort import examples
from tests.kernel.broker_machine import BrokerMachine

VALUES: Final = ("", "a", "b")
NAMES: Final = ("me", "you")
MOST_READERS: Final = 4


@dataclass
class Reader:
    """One consumer of the model: its arguments, position and deliveries, and the outcomes of these."""

    recipient: Recipient
    prefetch: int
    next_offset: int
    wanted: frozenset[str]
    name: str | None = None
    seen: int = 0
    delivered: list[int] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    returned: int | None = None

    def processed_up_to(self) -> int | None:
        """Return the last offset up to which all messages are processed."""
        last = None
        for offset in self.delivered:
            if offset not in self.done or (self.returned is not None and offset >= self.returned):
                break
            last = offset
        return last


class StreamMachine(BrokerMachine):
    """Random use of one stream, checked after each step."""

    @initialize(segment_size=st.sampled_from([1, 600, 2000]))
    def start(self, segment_size: int) -> None:
        self.numbers = count()
        self.broker = MemoryBroker()
        arguments: dict[str, Value] = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": segment_size}
        self.broker.vhost.declare_queue("log", is_durable=True, arguments=arguments)
        self.published: list[tuple[bytes, str]] = []
        self.attach()
        self.first = 0
        self.end_turn()
        self.commit()

    def attach(self) -> None:
        """Get the stream, which has no readers yet."""
        stream = self.broker.vhost.queue("log")
        assert isinstance(stream, Stream)
        self.stream = stream
        self.readers: list[Reader] = []
        self.offsets: dict[str, int] = stream.offsets
        self.ever_stored = {name: {offset} for name, offset in self.offsets.items()}

    # Steps

    @rule(values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=8), size=st.sampled_from([1, 1, 90_000]))
    def publish(self, values: list[str], size: int) -> None:
        for value in values:
            body = b"%d " % next(self.numbers) * size
            headers: dict[str, Value] = {"x-stream-filter-value": value} if value else {}
            self.broker.publish("log", body, headers=headers)
            self.published.append((body, value))

    @rule()
    def end_turn(self) -> None:
        self.broker.end_turn()
        self.flushed, self.flushed_first = len(self.published), self.first

    @rule()
    def commit(self) -> None:
        """Commit every turn that ended; the current turn continues."""
        self.broker.store.commit()
        self.committed, self.committed_first = self.flushed, self.flushed_first

    @rule()
    def end_turn_and_commit(self) -> None:
        self.end_turn()
        self.commit()

    @precondition(lambda self: len(self.readers) < MOST_READERS)
    @rule(
        start=st.sampled_from(["first", "last", "next", None]) | st.integers(-1, 60),
        prefetch=st.integers(1, 5),
        values=st.none() | st.sets(st.sampled_from(VALUES), min_size=1),
        name=st.none() | st.sampled_from(NAMES),
    )
    def consume(self, start: str | int | None, prefetch: int, values: set[str] | None, name: str | None) -> None:
        if any(name and reader.name == name for reader in self.readers):
            name = None  # only one reader per name
        arguments: dict[str, Value] = {} if start is None else {"x-stream-offset": start}
        if values is not None:
            arguments["x-stream-filter"] = [value for value in sorted(values) if value]
            arguments["x-stream-match-unfiltered"] = "" in values
        if name is not None:
            arguments["x-stream-consumer"] = name
        recipient = Recipient()
        recipient.consume(self.stream, prefetch=prefetch, arguments=arguments)
        wanted = frozenset(VALUES) if values is None else frozenset(values)
        self.readers.append(Reader(recipient, prefetch, self.start_offset(start, name), wanted, name))

    def start_offset(self, start: str | int | None, name: str | None) -> int:
        """Return the start offset of a reader with these arguments."""
        if start is None and name in self.offsets:
            start = self.offsets[name] + 1
        if isinstance(start, int):
            return min(max(start, self.first), len(self.published))
        ends = {"first": self.first, "last": max(self.first, self.committed - 1)}
        return ends.get(start or "next", len(self.published))

    @precondition(lambda self: self.readers)
    @rule(
        data=st.data(), outcome=st.sampled_from([DeliveryOutcome.ACCEPTED, DeliveryOutcome.ACCEPTED, *DeliveryOutcome])
    )
    def settle(self, data: st.DataObject, outcome: DeliveryOutcome) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        if reader.recipient.ledger:
            delivery = data.draw(st.sampled_from(list(reader.recipient.ledger)))
            reader.recipient.settle(delivery.tag, outcome)
            self.settled(reader, delivery.entry.position, outcome)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def settle_all(self, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(self.readers))
        positions = [delivery.entry.position for delivery in reader.recipient.ledger]
        reader.recipient.settle(0, up_to=True)
        for position in positions:
            self.settled(reader, position, DeliveryOutcome.ACCEPTED)

    def settled(self, reader: Reader, position: int, outcome: DeliveryOutcome) -> None:
        if outcome is DeliveryOutcome.REQUEUED:
            reader.returned = position if reader.returned is None else min(reader.returned, position)
        else:
            reader.done.add(position)
        before = self.offsets.get(reader.name or "")
        if reader.name is not None and (last := reader.processed_up_to()) is not None and last != before:
            self.offsets[reader.name] = last
            self.ever_stored.setdefault(reader.name, set()).add(last)

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A reader disconnects; its unsettled messages count as returned."""
        reader = data.draw(st.sampled_from(self.readers))
        self.readers.remove(reader)
        reader.recipient.leave()

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def open_or_close(self, data: st.DataObject) -> None:
        """Close or open the output of a peer."""
        recipient = data.draw(st.sampled_from(self.readers)).recipient
        recipient.is_open = not recipient.is_open
        if recipient.is_open:
            recipient.resume()

    @rule()
    def seal(self) -> None:
        self.stream.seal()
        assert self.stream.segments[-1].first == self.stream.segments[-1].end

    @rule(most=st.integers(0, 60))
    def truncate(self, most: int) -> None:
        sealed = [segment.end for segment in self.stream.segments if segment.is_sealed]
        self.first = max([self.first, *(end for end in sealed if end <= min(most, self.committed))])
        self.stream.truncate(most)

    @rule(name=st.sampled_from(NAMES), offset=st.integers(0, 60))
    def store_offset(self, name: str, offset: int) -> None:
        if all(reader.name != name for reader in self.readers):
            self.stream.store_offset(name, offset)
            self.offsets[name] = offset
            self.ever_stored.setdefault(name, set()).add(offset)

    @rule(seconds=st.sampled_from([0.1, 1.5]))
    def wait(self, seconds: float) -> None:
        self.broker.advance(seconds)
        self.end_turn()

    @rule()
    def crash_and_recover(self) -> None:
        ever_stored = self.ever_stored
        self.crash(is_committed=False)
        self.attach()
        for name, offset in self.offsets.items():
            assert offset in ever_stored[name], "the restored offset was never stored"
        del self.published[self.committed :]
        self.first = self.committed_first
        self.end_turn()

    # Invariants

    @invariant()
    def the_log_matches_the_model(self) -> None:
        stream = self.stream
        assert (stream.first_offset, stream.next_offset) == (self.first, len(self.published))
        assert stream.durable_end == self.committed
        assert len(stream) == len(self.published) - self.first
        ends = [self.first, *(segment.end for segment in stream.segments)]
        assert [segment.first for segment in stream.segments] == ends[:-1]
        assert ends[-1] == len(self.published)
        assert [segment.is_sealed for segment in stream.segments[:-1]] == [True] * (len(ends) - 2)

    @invariant()
    def each_reader_gets_matching_messages_once_and_in_order(self) -> None:
        self.broker.clock.advance(0)
        for reader in self.readers:
            deliveries = {delivery.tag: delivery.entry.position for delivery in reader.recipient.ledger}
            for received in reader.recipient.received[reader.seen :]:
                assert received.tag is not None
                self.check_delivery(reader, deliveries[received.tag], received.body)
            assert len(reader.recipient.ledger) <= reader.prefetch
            if reader.recipient.is_open and len(reader.recipient.ledger) < reader.prefetch:
                assert not self.missing(reader, self.committed), "a reader with credit did not get all messages"

    def check_delivery(self, reader: Reader, offset: int, body: bytes) -> None:
        """Check one delivery: only truncated messages were skipped."""
        assert offset >= reader.next_offset
        assert offset < self.committed, "delivered before it was durable"
        assert (body, True) == (self.published[offset][0], self.published[offset][1] in reader.wanted)
        assert not self.missing(reader, offset), "a matching message was skipped"
        reader.next_offset = offset + 1
        reader.seen += 1
        reader.delivered.append(offset)

    def missing(self, reader: Reader, end: int) -> list[int]:
        """Return the matching messages before ``end`` that the reader has not got."""
        offsets = range(max(reader.next_offset, self.first), end)
        return [offset for offset in offsets if self.published[offset][1] in reader.wanted]

    @invariant()
    def stored_offsets_match_the_model(self) -> None:
        assert self.stream.offsets == self.offsets
        ends = {name: max(offset + 1, self.first) for name, offset in self.offsets.items()}
        assert self.stream.lag == {name: max(0, self.committed - end) for name, end in ends.items()}


TestStreamMachine = StreamMachine.TestCase
TestStreamMachine.settings = settings(max_examples=examples(120), stateful_step_count=40, deadline=None)
