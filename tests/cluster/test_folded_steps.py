"""Folded steps have the effect of the steps one after the other, also if two leaders wrote them."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from gateway.cluster.replication.folded_steps import FoldedSteps, InLog
from gateway.kernel.journal.changes import Change, Dequeued, Discarded, Enqueued, Lsn, Stored
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header

#: Few numbers, so that they are used again.
NUMBERS = st.integers(1, 5)


def stored(number: int, body: bytes) -> Stored:
    message = Message("", "q", native_header(Properties()), body)
    message.id = number
    return Stored(message)


def enqueued(position: int, body_size: int) -> Enqueued:
    return Enqueued(
        queue_id=1,
        position=position,
        message_id=position,
        enqueued_at_ms=0,
        delivery_count=0,
        body_size=body_size,
        priority=0,
        due_at_ms=0,
        expires_at_ms=0,
    )


CHANGES = st.one_of(
    st.builds(stored, NUMBERS, st.binary(max_size=2)),
    st.builds(enqueued, NUMBERS, st.integers(0, 9)),
    st.builds(Discarded, NUMBERS),
    st.builds(Dequeued, NUMBERS),
)

State = dict[tuple[str, int], object]


def applied(state: State, changes: Iterable[Change]) -> State:
    """Return a store's messages after some changes."""
    found = dict(state)
    for change in changes:
        if isinstance(change, Stored):
            found["content", change.message_id] = change.message.body
        elif isinstance(change, Enqueued):
            found["place", change.position] = change.body_size
        elif isinstance(change, Discarded):
            found.pop(("content", change.message_id), None)
        elif isinstance(change, Dequeued):
            found.pop(("place", change.position), None)
    return found


@given(windows=st.lists(st.lists(st.lists(CHANGES, max_size=4), max_size=6), max_size=4))
def test_folded_steps_have_the_effect_of_the_steps(windows: list[list[list[Change]]]) -> None:
    expected: State = {}
    found: State = {}
    in_log = InLog(0, 0)
    for steps in windows:
        folded = FoldedSteps(in_log)
        for number, step in enumerate(steps, 1):
            folded.fold(Lsn(number), step)
            expected = applied(expected, step)
        found = applied(found, folded.changes())
        in_log = folded.in_log()
        assert found == expected


def test_a_message_with_the_id_of_a_discarded_one_stays() -> None:
    """A new leader gives out ids and positions again that the former one has freed."""
    former = FoldedSteps(InLog(0, 0))
    former.fold(Lsn(1), [stored(1, b"old"), enqueued(1, 3)])
    state = applied({}, former.changes())
    both = FoldedSteps(former.in_log())
    both.fold(Lsn(2), [Dequeued(1), Discarded(1)])
    both.fold(Lsn(3), [stored(1, b"new"), enqueued(1, 4)])
    assert applied(state, both.changes()) == {("content", 1): b"new", ("place", 1): 4}
