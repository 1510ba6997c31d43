"""One round of the event loop: what came in is done, then the journal is flushed, then every peer is sent to once.

Whoever has something to say is ``awaken``ed during the turn and asked for it at the end. Several messages for one
peer, from whichever connections, so become one write.
"""

from collections.abc import Callable
from typing import Protocol


class Speaker(Protocol):
    """Somebody with output to flush: the server side of a connection. What either step raises is its own affair."""

    def end_turn(self) -> None:
        """Add what is due only now that the journal was flushed: confirms."""
        ...

    def flush(self) -> None:
        """Send what waits."""
        ...

    def fail(self) -> None:
        """End, because an exception came out of one of these; called while it is being handled."""
        ...


class Turn:
    """Collects the speakers of a turn. ``schedule`` arranges for ``end`` to be called once the turn's input is done.

    ``flush_journal`` hands the turn's changes to the store before anybody speaks of them. ``is_scheduled`` says that
    the turn will end already, so that the hot path need not ask for it.
    """

    def __init__(self, flush_journal: Callable[[], None], schedule: Callable[[Callable[[], None]], object]) -> None:
        self._flush_journal = flush_journal
        self._schedule = schedule
        self._awake: list[Speaker] = []
        self.is_scheduled = False

    def awaken(self, speaker: Speaker) -> None:
        """Ask this speaker at the end of the turn. Callers make sure to ask once."""
        self._awake.append(speaker)
        if not self.is_scheduled:
            self.touch()

    def touch(self) -> None:
        """Make sure that this turn ends: something was recorded, or somebody wants to speak."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._schedule(self.end)

    def end(self) -> None:
        """Flush the journal, then everybody who is awake. Those awakened meanwhile belong to the next turn."""
        self.is_scheduled = False
        self._flush_journal()
        awake, self._awake = self._awake, []
        for speaker in awake:
            try:
                speaker.end_turn()
            except Exception:  # the seam between peers: one's fault must not silence the others
                speaker.fail()
        for speaker in awake:
            try:
                speaker.flush()
            except Exception:  # as above
                speaker.fail()
