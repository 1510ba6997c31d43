"""A node that follows keeps a copy of the data: it reads the log as it grows, so that a takeover needs only the rest.

Laws:

1. The copy is that of a prefix of the log. At a batch that is missing, damaged or out of order it reads again from
   where it is, if possible from another server; if that does not help, it begins a new copy.
2. It decides nothing: a new leader reads the rest up to its own claim, and checks the end, as with an empty copy.
3. What is not applied yet is bounded: the engine is held back by the copy's gate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.cluster.queue_log import LogFollowing, QueueId, QueueLogs, StoredBatch
from gateway.cluster.replication.log_copy import LogCopy
from gateway.kernel.clock import Clock, Timer
from gateway.kernel.errors import GatewayError

#: The pause before the log is followed again, in seconds; and that before another copy, which doubles each time
#: until a copy has caught up.
_AGAIN_S: Final = 0.5
_FIRST_ANEW_S: Final = 1.0
_LONGEST_ANEW_S: Final = 60.0

#: How often the log is followed again from one place before another copy is begun.
_MOST_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class StandbyLag:
    """The delay of a copy: the batches of the log that are known to be missing, and the age of its state."""

    batches: int
    seconds: float


class StandbyListener(Protocol):
    """Gets reports about a standby."""

    def on_caught_up(self, records: int) -> None:
        """Note that the copy has everything that the log had, for the first time since it was begun."""
        ...

    def on_interrupted(self, reason: str) -> None:
        """Note that the copy is read further from another server, or begun anew."""
        ...


class Standby:
    """The standby of one node. Owns the copy until it is handed over.

    ``new_copy`` returns a copy in an empty store; its argument is called if the copy fails later.
    """

    def __init__(
        self,
        logs: QueueLogs,
        queue: QueueId,
        clock: Clock,
        new_copy: Callable[[Callable[[str], None]], LogCopy],
        listener: StandbyListener,
    ) -> None:
        self._logs = logs
        self._queue = queue
        self._clock = clock
        self._new_copy = new_copy
        self._listener = listener
        self._is_running = False
        self._copy: LogCopy | None = None
        self._following: LogFollowing | None = None
        self._timer: Timer | None = None
        self._attempts = 0
        self._pause_s = _FIRST_ANEW_S
        self._behind = 0
        self._is_reported = False
        #: Since when the state of the copy counts; and the batch with which it is that of a later time.
        self._as_of_s: float | None = None
        self._awaited: tuple[float, int] | None = None

    @property
    def copy(self) -> LogCopy | None:
        """The copy in progress."""
        return self._copy

    @property
    def lag(self) -> StandbyLag | None:
        """The delay of the copy; ``None`` while there is no copy, or nothing is known of the log."""
        self._note_applied()
        if self._copy is None or self._as_of_s is None:
            return None
        is_current = self._is_current(self._copy) and self._following is not None
        age_s = 0.0 if is_current else self._clock.monotonic_s() - self._as_of_s
        return StandbyLag(self._behind + self._copy.writer.backlog, max(0.0, age_s))

    def _is_current(self, copy: LogCopy) -> bool:
        """Whether a copy has everything that was read, and no more is known."""
        return not self._behind and not copy.writer.backlog

    def start(self) -> None:
        """Begin a copy; harmless while there is one."""
        if not self._is_running:
            self._is_running = True
            self._begin()

    def hand_over(self) -> LogCopy | None:
        """Stop, and return the copy as it is; ``None`` if there is none that can be used."""
        self._is_running = False
        self._stop_following()
        copy, self._copy = self._copy, None
        if copy is not None and copy.writer.failure is not None:
            copy.discard()
            return None
        return copy

    def stop(self) -> None:
        """Stop, and discard the copy."""
        copy = self.hand_over()
        if copy is not None:
            copy.discard()

    # ---- Following -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin a copy."""
        self._timer = None
        self._attempts = self._behind = 0
        self._is_reported = False
        self._as_of_s = self._awaited = None
        try:
            self._copy = self._new_copy(self._copy_failed)
        except (GatewayError, OSError) as error:
            self._begin_later(str(error))
            return
        self._follow()

    def _follow(self) -> None:
        assert self._copy is not None
        self._timer = None
        self._following = self._logs.follow(self._queue, self, self._copy.reading.position, self._copy.writer.gate)

    def _stop_following(self) -> None:
        following, self._following = self._following, None
        if following is not None:
            following.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(self, batch: StoredBatch, behind: int) -> None:
        """Take the next batch. :raises LogGap: if it is damaged, or not the next one."""
        copy = self._copy
        if copy is None:
            return
        self._note_applied()
        now_s = self._clock.monotonic_s()
        if self._as_of_s is None or self._is_current(copy):
            self._as_of_s = now_s
        copy.reading.take_batch(batch)
        self._attempts = 0
        self._behind = behind
        if behind == 0 and self._awaited is None:
            self._awaited = now_s, copy.writer.taken

    def _note_applied(self) -> None:
        """Note of which time the copy is."""
        if self._copy is None or self._awaited is None or self._copy.writer.applier.records < self._awaited[1]:
            return
        self._as_of_s, self._awaited = self._awaited[0], None
        if not self._is_reported:
            self._is_reported = True
            self._pause_s = _FIRST_ANEW_S
            self._listener.on_caught_up(self._copy.writer.applier.records)

    def on_ended(self, reason: str) -> None:
        """Go on from where the copy is, or begin another one."""
        self._following = None
        if not self._is_running:
            return
        self._attempts += 1
        if self._attempts >= _MOST_ATTEMPTS:
            self._begin_later(reason)
        else:
            self._listener.on_interrupted(reason)
            self._timer = self._clock.call_later(_AGAIN_S, self._follow)

    def _copy_failed(self, reason: str) -> None:
        if self._is_running:
            self._begin_later(reason)

    def _begin_later(self, reason: str) -> None:
        """Discard the copy, and begin another one after a pause."""
        self._stop_following()
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.discard()
        self._listener.on_interrupted(f"{reason}; the copy is begun anew")
        self._timer = self._clock.call_later(self._pause_s, self._begin)
        self._pause_s = min(2 * self._pause_s, _LONGEST_ANEW_S)
