"""One bridge: opens both ends, moves messages, and opens them again after a failure."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeAlias

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock, Timer
from gateway.logs import StructuredLog

Lost: TypeAlias = Callable[[str], None]
"""To be called with the reason when an end is lost."""


class MessageFlow(Protocol):
    """The movement of messages between open ends: a ``Transfer``, or several as one."""

    @property
    def forwarded(self) -> int:
        """The number of messages that were moved."""
        ...

    @property
    def pending(self) -> int:
        """The number of messages that were received and are not moved yet."""
        ...

    @property
    def remaining(self) -> int | None:
        """The number of messages to be moved; ``None`` is no limit."""
        ...

    @property
    def is_blocked(self) -> bool:
        """Whether a destination accepts no messages for now."""
        ...

    def start(self) -> None:
        """Begin."""
        ...

    def close(self) -> None:
        """Close all ends."""
        ...


Opener: TypeAlias = Callable[[Lost], Coroutine[Any, Any, MessageFlow]]
"""Opens both ends. If it fails, it leaves no end open."""


class LinkState(Enum):
    """The states of a link. A terminated link starts again after its delay, if it has one."""

    STARTING = "starting"
    RUNNING = "running"
    TERMINATED = "terminated"


class Link:
    """A bridge that is kept up.

    ``reason`` is why it was terminated last, ``since_ms`` the wall time of the last change of ``state``. ``delay_s`` is
    the time between two attempts; with 0 there is one attempt only. ``on_change`` is called after each change.
    """

    def __init__(
        self, name: str, opener: Opener, delay_s: float, clock: Clock, log: StructuredLog, **logged: object
    ) -> None:
        self.name = name
        self.state = LinkState.STARTING
        self.reason = ""
        self.since_ms = clock.wall_ms()
        self.transfer: MessageFlow | None = None
        self.on_change: Callable[[], None] = lambda: None
        self._opener = opener
        self._delay_s = delay_s
        self._clock = clock
        self._log = log
        self._logged = logged
        self._opening: Deferred[MessageFlow] | None = None
        self._attempt: object | None = None
        self._timer: Timer | None = None

    @property
    def since(self) -> str:
        """The time of the last change of ``state``, as RabbitMQ shows it in statuses."""
        return datetime.fromtimestamp(self.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")

    @property
    def is_blocked(self) -> bool:
        """Whether messages wait for a destination that accepts none for now."""
        return self.transfer is not None and self.transfer.is_blocked

    def start(self) -> None:
        """Open both ends and move messages; after a failure again and again."""
        self._timer = None
        self._attempt = attempt = object()
        self._enter(LinkState.STARTING)
        self._opening = opening = Deferred.fromCoroutine(self._opener(partial(self._lost, attempt)))
        opening.addCallbacks(partial(self._opened, attempt), partial(self._failed, attempt))

    def stop(self) -> None:
        """Close both ends, and do not start again."""
        self._leave()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        """Ignore the loss of an end from now on: the link is about to stop."""
        self._attempt = None

    def fail(self, reason: str) -> None:
        """Record that the link cannot start: its settings are invalid."""
        self.reason = reason
        self._enter(LinkState.TERMINATED)

    def _opened(self, attempt: object, transfer: MessageFlow) -> None:
        if attempt is not self._attempt:
            transfer.close()  # stopped, or an end was lost before both were open
            return
        self._opening = None
        self.transfer = transfer
        self._log.info("bridge running", bridge=self.name, **self._logged)
        self._enter(LinkState.RUNNING)
        transfer.start()

    def _failed(self, attempt: object, failure: Failure) -> None:
        if not isinstance(failure.value, CancelledError):
            self._lost(attempt, reason_of(failure.value))

    def _lost(self, attempt: object, reason: str) -> None:
        if attempt is not self._attempt:
            return
        self._leave()
        if reason != self.reason or self.state is LinkState.RUNNING:  # the same failure is logged once
            self._log.warning("bridge terminated", bridge=self.name, reason=reason, **self._logged)
        self.reason = reason
        self._enter(LinkState.TERMINATED)
        if self._delay_s > 0 and self._timer is None:
            self._timer = self._clock.call_later(self._delay_s, self.start)

    def _leave(self) -> None:
        """End the current attempt, and close the ends that it has opened."""
        self._attempt = None
        opening, self._opening = self._opening, None
        transfer, self.transfer = self.transfer, None
        if transfer is not None:
            transfer.close()
        elif opening is not None and not opening.called:
            opening.cancel()

    def _enter(self, state: LinkState) -> None:
        self.state = state
        self.since_ms = self._clock.wall_ms()
        self.on_change()


def reason_of(error: BaseException | None) -> str:
    """Return the text of an error of a connection, with the code of the peer's reply if it has one."""
    code, text = getattr(error, "reply_code", None), getattr(error, "reply_text", None)
    if code is not None:
        return f"{code} {text}"
    return str(error) or type(error).__name__
