"""The flow of messages between two ends, without I/O."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.bridges.parcel import Parcel
from gateway.bridges.transfer import MOST_HELD, REFUSED_DELAY_S, ShovelAckMode, Transfer
from gateway.testing import FakeClock
from tests.bridges.ends import FakeDestination, FakeSource

UNWANTED = -1


class Bench:
    """A started transfer between two fake ends."""

    def __init__(self, ack_mode: ShovelAckMode = ShovelAckMode.ON_CONFIRM, remaining: int | None = None) -> None:
        self.source, self.destination, self.clock = FakeSource(), FakeDestination(), FakeClock()
        self.done = 0
        self.transfer = Transfer(
            self.source, self.destination, ack_mode, self.address, self.clock.call_later, remaining, self.finish
        )
        self.transfer.start()

    def address(self, parcel: Parcel) -> bool:
        parcel.routing_key = "new"
        return parcel.tag != UNWANTED

    def finish(self) -> None:
        self.done += 1


def test_a_message_is_accepted_when_the_destination_has_confirmed_it() -> None:
    bench = Bench()
    bench.source.send(1, 2)
    assert [parcel.routing_key for parcel in bench.destination.published] == ["new", "new"]
    assert not bench.source.accepted
    bench.destination.answer(2)
    assert bench.source.accepted == [2]
    assert (bench.transfer.forwarded, bench.transfer.pending) == (1, 1)


def test_on_publish_and_no_ack_accept_at_once() -> None:
    on_publish, no_ack = Bench(ShovelAckMode.ON_PUBLISH), Bench(ShovelAckMode.NO_ACK)
    for bench in (on_publish, no_ack):
        bench.source.send(1)
        assert bench.destination.tags == [1]
        assert bench.transfer.forwarded == 1
        assert bench.source.accepted == [1]


def test_a_message_that_is_not_to_be_sent_is_accepted() -> None:
    bench = Bench()
    bench.source.send(UNWANTED)
    assert bench.source.accepted == [UNWANTED]
    assert not bench.destination.published


def test_a_refused_message_returns_after_a_delay() -> None:
    bench = Bench()
    bench.source.send(1)
    bench.destination.answer(1, is_taken=False)
    assert not bench.source.requeued
    bench.clock.advance(REFUSED_DELAY_S)
    assert bench.source.requeued == [1]
    assert bench.transfer.pending == 0


def test_messages_wait_in_order_for_a_blocked_destination() -> None:
    bench = Bench()
    bench.destination.is_blocked = True
    bench.source.send(*range(MOST_HELD))
    assert bench.source.is_paused
    assert not bench.destination.published
    bench.destination.unblock()
    assert bench.destination.tags == list(range(MOST_HELD))
    assert not bench.source.is_paused


def test_no_more_messages_than_remain_are_moved() -> None:
    bench = Bench(remaining=2)
    bench.source.send(1, 2, 3)
    assert bench.destination.tags == [1, 2]
    bench.destination.answer(1)
    assert not bench.done
    bench.destination.answer(2)
    assert bench.done == 1


def test_a_refused_message_counts_again() -> None:
    bench = Bench(remaining=1)
    bench.source.send(1)
    bench.destination.answer(1, is_taken=False)
    bench.clock.advance(REFUSED_DELAY_S)
    bench.source.send(2)
    bench.destination.answer(2)
    assert (bench.source.accepted, bench.done) == ([2], 1)


def test_nothing_remains_at_the_start() -> None:
    bench = Bench(remaining=0)
    assert bench.done == 1
    assert not bench.source.is_started


def test_after_the_end_nothing_is_settled() -> None:
    bench = Bench()
    bench.source.send(1, 2)
    bench.destination.answer(1, is_taken=False)
    bench.transfer.close()
    bench.destination.answer(2)
    bench.clock.advance(REFUSED_DELAY_S)
    assert bench.source.is_closed
    assert bench.destination.is_closed
    assert not bench.source.accepted + bench.source.requeued


@given(st.lists(st.sampled_from(["send", "confirm", "refuse", "block", "unblock"]), max_size=60))
def test_only_confirmed_messages_are_accepted_and_none_is_sent_twice(actions: list[str]) -> None:
    bench = Bench()
    sent, confirmed = 0, []
    for action in actions:
        unanswered = bench.destination.unanswered
        if action == "send":
            sent += 1
            bench.source.send(sent)
        elif action == "block":
            bench.destination.is_blocked = True
        elif action == "unblock":
            bench.destination.unblock()
        elif unanswered:
            tag = next(iter(unanswered))
            bench.destination.answer(tag, is_taken=action == "confirm")
            confirmed += [tag] if action == "confirm" else []
    assert bench.source.accepted == confirmed
    bench.destination.unblock()
    assert bench.destination.tags == list(range(1, sent + 1))
