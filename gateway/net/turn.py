"""One iteration of the event loop: handle what came in, flush the journal, then write to every peer once.

During the turn, outboxes that have output call ``schedule_flush``, and channels that wait for the store call
``defer_confirms``. At the end of the turn the confirms are collected first, then every scheduled outbox is written. So
several messages for one peer, from any connections, become one write.
"""

from collections import deque

from gateway.kernel.budget import LOOK_EVERY, SLOW_S
from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.journal.journal import Journal


@mypyc_attr(allow_interpreted_subclasses=True)
class Speaker:
    """The server side of a connection, with output to flush. What either step raises is its own affair."""

    @property
    def who(self) -> str:
        """What listings call the connection."""
        return ""

    def wake(self) -> None:
        """Take part in the end of this turn."""
        raise NotImplementedError

    def defer_confirms(self) -> None:
        """Have something to add at the end of this turn."""
        raise NotImplementedError

    def end_turn(self) -> None:
        """Add what is due only now that the journal was flushed: confirms. Asked of those who owe some."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send what waits."""
        raise NotImplementedError

    def go_on(self) -> bool:
        """Work on input that the budget of an earlier turn left over; return whether some is left still."""
        raise NotImplementedError

    def fail(self) -> None:
        """End, because an exception came out of one of these; called while it is being handled."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Schedule:
    """Whoever knows when the input of a turn is done."""

    def end_soon(self, turn: "Turn") -> None:
        """Tell this turn to ``end`` then."""
        raise NotImplementedError

    def go_on_soon(self, turn: "Turn") -> None:
        """Tell this turn to ``go_on`` after the next look for input."""
        raise NotImplementedError


class Turn:
    """Collects the speakers of a turn; the ``schedule`` has it end once its input is done.

    The ``journal`` hands the turn's changes to the store before anybody speaks of them. ``budget`` is the work that the
    turn may do. ``is_scheduled`` says that the turn will end already, so that the hot path need not ask for it.
    """

    def __init__(self, journal: Journal, schedule: Schedule) -> None:
        self._journal = journal
        self._schedule = schedule
        self._awake: list[Speaker] = []
        self._owing: list[Speaker] = []
        self._held: deque[Speaker] = deque()
        self.budget = journal.budget
        self.is_scheduled = False

    def schedule_flush(self, speaker: Speaker) -> None:
        """Ask this speaker at the end of the turn. Callers make sure to ask once."""
        self._awake.append(speaker)
        if not self.is_scheduled:
            self.touch()

    def defer_confirms(self, speaker: Speaker) -> None:
        """Ask this speaker for confirms, too. Twice does no harm: it has added them by then."""
        self._owing.append(speaker)
        if not self.is_scheduled:
            self.touch()

    def touch(self) -> None:
        """Make sure that this turn ends: something was recorded, or somebody wants to speak."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._schedule.end_soon(self)

    def hold(self, speaker: Speaker) -> None:
        """Have this speaker ``go_on`` in turns to come. Callers make sure to ask once."""
        self._held.append(speaker)
        if len(self._held) == 1:
            self._schedule.go_on_soon(self)

    def go_on(self) -> None:
        """Serve those who were held back, in rotation, for as long as one budget lasts.

        They come after everybody else: whoever asks for little waits for one budget of theirs at most.
        """
        held, budget = self._held, self.budget
        before_s = budget.monotonic_s()
        budget.renew()
        for _ in range(len(held)):
            speaker = held.popleft()
            try:
                if speaker.go_on():
                    held.append(speaker)
            except Exception:  # the seam between peers: one's fault must not keep the others waiting
                speaker.fail()
            now_s = budget.monotonic_s()
            if now_s - before_s > 2 * SLOW_S:  # a whole budget is what each may take
                budget.on_slow(f"connection {speaker.who}", now_s - before_s)
            before_s = now_s
            if budget.work >= LOOK_EVERY and budget.is_spent():
                break
        budget.renew()
        if held:
            self._schedule.go_on_soon(self)
        if self._journal.has_begun:
            self.touch()

    def end(self) -> None:
        """Flush the journal, then everybody who is awake. Those awakened meanwhile belong to the next turn."""
        self.is_scheduled = False
        self.budget.renew()
        self._journal.flush()
        awake, self._awake = self._awake, []
        if self._owing:
            self._ask_owing()
        for speaker in awake:
            try:
                speaker.flush()
            except Exception:  # the seam between peers: one's fault must not silence the others
                speaker.fail()

    def _ask_owing(self) -> None:
        owing, self._owing = self._owing, []
        for speaker in owing:
            try:
                speaker.end_turn()
            except Exception:  # as above
                speaker.fail()
