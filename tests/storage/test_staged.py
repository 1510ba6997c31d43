"""Contents are readable from their append until they are durable; the last staged change counts."""

from gateway.kernel.journal.changes import Discarded, Lsn, Stored
from gateway.testing.store_session import content_of, message_with
from gateway_lmdb.staged import Append, Staged, content_key

KEY = content_key(1, is_spilled=False)


def staged(*changes: Stored | Discarded) -> Staged:
    """Stage each change as a separate append, at positions 1, 2, 3 ..."""
    staged = Staged(lambda append: None)
    for lsn, change in enumerate(changes, 1):
        staged.add(Append(Lsn(lsn), [change]))
    return staged


def test_contents_that_were_not_staged_are_not_found() -> None:
    assert staged(Stored(message_with(2))).find(KEY) == (False, None)


def test_staged_content_is_found_until_it_is_durable() -> None:
    some = staged(Stored(message_with(1)))
    assert some.find(KEY) == (True, content_of(message_with(1)))
    some.applied(Lsn(1))
    assert some.find(KEY) == (False, None)


def test_content_that_became_durable_unread_is_removed_too() -> None:
    some = staged(Stored(message_with(1)))
    some.applied(Lsn(1))
    assert some.find(KEY) == (False, None)


def test_a_later_discard_outlives_the_watermark_of_the_content() -> None:
    some = staged(Stored(message_with(1)), Discarded(1))
    assert some.find(KEY) == (True, None)
    some.applied(Lsn(1))
    assert some.find(KEY) == (True, None)
    some.applied(Lsn(2))
    assert some.find(KEY) == (False, None)


def test_spilled_content_is_distinct_from_other_content_with_its_id() -> None:
    some = staged(Stored(message_with(1), is_spilled=True), Discarded(1))
    assert some.find(content_key(1, is_spilled=True)) == (True, content_of(message_with(1)))
    assert some.find(KEY) == (True, None)
