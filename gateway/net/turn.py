"""One iteration of the event loop: handle what came in, flush the journal, then write to every peer once.

During the turn, outboxes that have output call ``schedule_flush``. At the end of the turn the journal hands the changes
to the store and sends the confirms that are due; then every scheduled outbox is written. So several messages for one
peer, from any connections, become one write. Little output of a request that takes several turns is gathered for a few
of them.
"""

from collections import deque
from typing import Final

from gateway.kernel.budget import SLOW_S, WORK_PER_CLOCK_READING
from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.journal.journal import Journal

#: Longest time for which output that follows from leftover input is gathered before it is written, in seconds. Without
#: that, a batch to 1,000 subscribers is written in pieces as small as a turn makes them, at 1,000 system calls a turn.
GATHER_S: Final = 0.02


@mypyc_attr(allow_interpreted_subclasses=True)
class TurnParticipant:
    """The server side of a connection, with output to flush. It handles its own exceptions."""

    @property
    def connection_name(self) -> str:
        """The connection's name in listings."""
        return ""

    def wake(self) -> None:
        """Schedule a flush at the end of this turn."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send the waiting output."""
        raise NotImplementedError

    def can_gather(self) -> bool:
        """Whether the waiting output is little, so that it may wait for more."""
        return False

    def go_on(self) -> bool:
        """Continue with the leftover input of an earlier turn; return whether some is still left."""
        raise NotImplementedError

    def fail(self) -> None:
        """End the connection, because one of these methods raised. Called while the exception is being handled."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Schedule:
    """The part of the event loop that ends turns when their input is served."""

    def end_soon(self, turn: "Turn") -> None:
        """Call ``end`` of this turn when its input is served."""
        raise NotImplementedError

    def go_on_soon(self, turn: "Turn") -> None:
        """Call ``go_on`` of this turn after the next poll."""
        raise NotImplementedError


class Turn:
    """Collects the participants of a turn; the ``schedule`` ends it when its input is served.

    The ``journal`` passes the turn's changes to the store before any output is sent. ``budget`` limits the work of the
    turn. ``is_scheduled``: the turn's end is scheduled, so that the hot path need not call ``touch``.
    """

    def __init__(self, journal: Journal, schedule: Schedule) -> None:
        self._journal = journal
        self._schedule = schedule
        self._awake: list[TurnParticipant] = []
        self._gathering: list[TurnParticipant] = []
        self._gathers_until_s = 0.0
        self._held: deque[TurnParticipant] = deque()
        self._will_go_on = False
        self.budget = journal.budget
        self.is_scheduled = False

    def schedule_flush(self, participant: TurnParticipant) -> None:
        """Flush this participant at the end of the turn. Call it once per turn and participant."""
        self._awake.append(participant)
        if not self.is_scheduled:
            self.touch()

    def touch(self) -> None:
        """Schedule the end of this turn: there are changes to record or output to send."""
        if not self.is_scheduled:
            self.is_scheduled = True
            self._schedule.end_soon(self)

    def hold(self, participant: TurnParticipant) -> None:
        """Let this participant ``go_on`` in later turns. Call it once per participant."""
        self._held.append(participant)
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        """Schedule ``go_on``, once until it is called."""
        if not self._will_go_on:
            self._will_go_on = True
            self._schedule.go_on_soon(self)

    @property
    def output_count(self) -> int:
        """The number of participants with output in this turn."""
        return len(self._awake)

    def gather_since(self, count: int) -> None:
        """Let little output wait for that of input which is left over: that of all participants but the first ones.

        The first ``count`` had output before that input was served.
        """
        output = self._gathering + self._awake[count:]
        self._gather(output, self._awake[:count], self.budget.monotonic_s())

    def go_on(self) -> None:
        """Serve the participants with leftover input in rotation, within one budget.

        They are served after all others: a connection with little input waits for one of their budgets at most.
        """
        self._will_go_on = False
        held, budget = self._held, self.budget
        awake, self._awake = self._awake, []
        now_s = budget.monotonic_s()
        budget.renew()
        for _ in range(len(held)):
            participant, before_s = held.popleft(), now_s
            try:
                if participant.go_on():
                    held.append(participant)
                else:
                    awake.append(participant)  # its answers are complete
            except Exception:  # an error of one connection must not keep the others waiting
                participant.fail()
            now_s = budget.monotonic_s()
            if now_s - before_s > 2 * SLOW_S:  # each may use a whole budget
                budget.took(now_s - before_s)
                budget.on_slow(f"connection {participant.connection_name}", now_s - before_s)
            if budget.work >= WORK_PER_CLOCK_READING and budget.is_spent():
                break
        budget.renew()
        self._gather(self._gathering + self._awake, awake, now_s)
        if held:
            self._go_on_soon()
        if self._awake or self._journal.has_begun:
            self.touch()

    def _gather(self, output: list[TurnParticipant], others: list[TurnParticipant], now_s: float) -> None:
        """Let the output of leftover input wait for that of its next shares, if it is little; flush ``others`` now."""
        if not self._gathering:
            self._gathers_until_s = now_s + GATHER_S
        self._awake = others
        self._gathering = []
        if not self._held or now_s >= self._gathers_until_s:
            others += output
            return
        for participant in output:
            (self._gathering if participant.can_gather() else others).append(participant)

    def end(self) -> None:
        """Flush the journal, then every scheduled participant. Those scheduled meanwhile belong to the next turn."""
        self.budget.renew()
        try:
            self._journal.flush()  # confirms schedule flushes, which belong to this turn
        finally:
            self.is_scheduled = False
        if self._journal.has_begun:
            self.touch()
        awake, self._awake = self._awake, []
        budget = self.budget
        for participant in awake:
            try:
                participant.flush()
            except Exception:  # an error of one connection must not stop the others' output
                participant.fail()
            if budget.work >= WORK_PER_CLOCK_READING and budget.is_spent():  # consumers that were resumed got much
                self._postpone(awake[awake.index(participant) + 1 :])
                return

    def _postpone(self, awake: list[TurnParticipant]) -> None:
        """Flush these participants in the next turn, before others."""
        if awake:
            self._awake = awake + self._awake
            self.touch()
