"""Consumers of one name that share a stream: one reads, and another one goes on where it has stopped."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.streams.groups import GroupLoads, StreamGroups
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker, Recipient
from tests.kernel.streams.test_streams import crash_and_restart, numbers_received, publish, settle, stream_of


class Member(Recipient):
    """A recipient with a connection of its own."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @property
    def origin(self) -> Origin:
        return Origin(self.name, 1, "guest", "amqp091")

    def join(self, broker: MemoryBroker, *streams: Stream, prefetch: int = 100, start: Value = "first") -> "Member":
        """Consume streams as one of the group."""
        arguments = {"x-stream-consumer": "group", "x-single-active-consumer": True, "x-stream-offset": start}
        for stream in streams:
            self.consume(stream, prefetch=prefetch, arguments=arguments)
        broker.advance(0)
        return self

    def reads(self, *streams: Stream) -> list[str]:
        """Return the names of the streams that this member reads."""
        return [each.queue.name for each in self.consumers if each.queue.is_active(each)]


def leave(broker: MemoryBroker, member: Member) -> None:
    member.leave()
    broker.advance(0)


def test_one_consumer_of_a_group_reads(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1)
    first, second = Member("a").join(broker, stream), Member("b").join(broker, stream)
    publish(broker, 2)
    assert (numbers_received(first), numbers_received(second)) == ([0, 1, 2], [])
    assert [first.reads(), second.reads()] == [["log"], []]


def test_the_next_one_goes_on_at_the_stored_offset(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(5))
    first, second = Member("a").join(broker, stream), Member("b").join(broker, stream)
    settle(broker, first, 1)
    settle(broker, first, 2)
    leave(broker, first)
    assert numbers_received(second) == [2, 3, 4]


def test_a_group_without_a_stored_offset_loses_nothing(broker: MemoryBroker) -> None:
    """It began at the end; what the first one got and did not acknowledge goes to the next one."""
    stream = stream_of(broker)
    publish(broker, 0)
    first, second = (Member(name).join(broker, stream, start="next") for name in "ab")
    publish(broker, 1, 2)
    assert numbers_received(first) == [1, 2]
    leave(broker, first)
    assert numbers_received(second) == [1, 2]


def test_a_group_goes_on_after_a_crash_although_it_names_a_start(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(4))
    first = Member("a").join(broker, stream)
    settle(broker, first, 1)
    settle(broker, first, 2)
    broker.advance(1)
    broker.commit()
    after, restarted = crash_and_restart(broker)
    assert numbers_received(Member("a").join(after, restarted)) == [2, 3]


def test_acknowledgements_after_the_cancellation_move_no_offset(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(4))
    first, second = Member("a").join(broker, stream), Member("b").join(broker, stream)
    first.cancel(first.consumers[0])
    broker.advance(0)
    settle(broker, second, 0)
    settle(broker, first, 1)
    assert stream.offsets == {"group": 3}


def test_a_returned_message_goes_to_the_next_one(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, *range(4))
    first, second = Member("a").join(broker, stream), Member("b").join(broker, stream)
    settle(broker, first, 1)
    settle(broker, first, 2, DeliveryOutcome.REQUEUED)
    settle(broker, first, 3)
    leave(broker, first)
    assert numbers_received(second) == [1, 2, 3]


def test_other_consumers_of_the_name_read_for_themselves(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    publish(broker, 0, 1)
    Member("a").join(broker, stream)
    alone = Recipient()
    alone.consume(stream, prefetch=10, arguments={"x-stream-consumer": "group", "x-stream-offset": "first"})
    broker.advance(0)
    assert numbers_received(alone) == [0, 1]


# Partitions


def partitions(broker: MemoryBroker, count: int = 3) -> list[Stream]:
    streams = [stream_of(broker, f"p-{number}") for number in range(count)]
    for number, stream in enumerate(streams):
        publish(broker, *range(number * 10, number * 10 + 3), to=stream.name)
    return streams


def test_partitions_are_handed_out_evenly(broker: MemoryBroker) -> None:
    """A partition moves once everything that its reader got is acknowledged: no message comes twice."""
    streams = partitions(broker)
    members = [Member("a").join(broker, *streams)]
    assert members[0].reads() == ["p-0", "p-1", "p-2"]
    for name in "bc":
        members.append(Member(name).join(broker, *streams))
        for member in members:
            settle(broker, member, 0)
    assert [len(member.reads()) for member in members] == [1, 1, 1]
    for stream in streams:
        publish(broker, 99, to=stream.name)
    assert sorted(numbers_received(members[0])) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 99]
    assert [numbers_received(member) for member in members[1:]] == [[99], [99]]


def test_a_partition_moves_only_when_nothing_of_it_is_unacknowledged(broker: MemoryBroker) -> None:
    streams = partitions(broker)
    first = Member("a").join(broker, *streams, prefetch=2)
    second = Member("b").join(broker, *streams)
    assert (numbers_received(second), second.reads()) == ([], [])
    publish(broker, 3, to="p-0")
    settle(broker, first, 1)
    assert numbers_received(second) == []
    settle(broker, first, 2)
    assert (numbers_received(second), second.reads()) == ([2, 3], ["p-0"])


def test_a_partition_stays_if_its_next_reader_leaves_before(broker: MemoryBroker) -> None:
    streams = partitions(broker)
    first = Member("a").join(broker, *streams, prefetch=2)
    second = Member("b").join(broker, *streams)
    leave(broker, second)
    settle(broker, first, 0)
    settle(broker, first, 0)
    assert sorted(numbers_received(first)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert first.reads() == ["p-0", "p-1", "p-2"]


def test_a_reader_that_leaves_hands_over_to_its_successor(broker: MemoryBroker) -> None:
    streams = partitions(broker)
    first = Member("a").join(broker, *streams, prefetch=2)
    second, third = Member("b").join(broker, *streams), Member("c").join(broker, *streams)
    leave(broker, first)
    assert sorted(second.reads() + third.reads()) == ["p-0", "p-1", "p-2"]
    assert sorted(numbers_received(second) + numbers_received(third)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def test_a_deleted_stream_ends_its_group(broker: MemoryBroker) -> None:
    stream = stream_of(broker)
    first, second = Member("a").join(broker, stream), Member("b").join(broker, stream)
    broker.vhost.delete_queue(stream)
    broker.advance(0)
    assert (first.reads(), second.reads()) == ([], [])
    anew = stream_of(broker)
    publish(broker, 7)
    assert numbers_received(Member("c").join(broker, anew)) == [7]


INVALID = [
    pytest.param({"x-single-active-consumer": True}, "it needs x-stream-consumer, the name of the group", id="no name"),
    pytest.param(
        {"x-single-active-consumer": 1, "x-stream-consumer": "g"}, "{unacceptable_type,signedint}", id="a number"
    ),
]


@pytest.mark.parametrize(("arguments", "error"), INVALID)
def test_invalid_arguments_are_refused(broker: MemoryBroker, arguments: dict[str, Value], error: str) -> None:
    stream = stream_of(broker)
    refusal = f"invalid arg 'x-single-active-consumer' for queue 'log' in vhost '/': {error}"
    with pytest.raises(PreconditionFailed, match=refusal):
        Recipient().consume(stream, prefetch=1, arguments=arguments)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_each_message_is_acknowledged_once_in_any_order_of_events(data: st.DataObject) -> None:
    """Members join, acknowledge everything and leave in any order; nothing comes twice after an acknowledgement."""
    broker = MemoryBroker()
    streams = [stream_of(broker, f"p-{number}") for number in range(3)]
    members: list[Member] = []
    acknowledged: dict[str, list[int]] = {stream.name: [] for stream in streams}
    published = 0

    def acknowledge(member: Member) -> None:
        while member.ledger:
            for delivery in list(member.ledger):
                acknowledged[delivery.queue.name].append(delivery.entry.position)
            settle(broker, member, 0)

    for step in data.draw(st.lists(st.sampled_from(["join", "leave", "publish", "acknowledge"]), max_size=25)):
        if step == "join" and len(members) < 4:
            members.append(Member(f"m{len(members)}{published}").join(broker, *streams, prefetch=2))
        elif step == "publish":
            for stream in streams:
                publish(broker, published, published + 1, published + 2, to=stream.name)
            published += 3
        elif members:
            member = members[data.draw(st.integers(0, len(members) - 1))]
            if step == "acknowledge":
                acknowledge(member)
            elif step == "leave":
                members.remove(member)
                leave(broker, member)
        for stream in streams:
            readers = [each for each in stream.consumers if stream.is_active(each)]
            assert len(readers) <= 1
    members.append(Member("last").join(broker, *streams))
    for _ in range(4):
        for member in members:
            acknowledge(member)
    assert acknowledged == {stream.name: list(range(published)) for stream in streams}
    counts = [len(member.reads()) for member in members]
    assert sum(counts) == 3


def test_loads_are_forgotten_with_their_consumers(broker: MemoryBroker) -> None:
    """The table of loads has no entry once all have left."""
    loads = GroupLoads()
    groups = StreamGroups(loads)
    stream = stream_of(broker)
    consumers: list[Consumer] = []
    for name in "abc":
        member = Member(name)
        member.consume(stream, prefetch=1)
        consumers.append(member.consumers[0])
        groups.join("group", consumers[-1], 0)
    for consumer in consumers:
        groups.leave(consumer)
    assert all(loads.of("group", consumer) == 0 for consumer in consumers)
    assert not loads._count_by_place
