"""The reactor's poll loop: waits for events, serves those of one turn and ends it, again and again.

The stock loop wraps each readiness in a logging context and would need a delayed call for the end of a turn. With
thousands of connections that say little each, that is half of the cost of a message (measured: 8.4 to 5.5 µs). A small
packet alone is a turn of its own, so what a turn needs is in locals, and what is Twisted's is asked for once.
"""

import math
import time
from select import EPOLLIN
from time import monotonic as monotonic_s
from typing import Any, Final

from twisted.logger import Logger

from gateway.net.connection_io import ConnectionIO
from gateway.net.login_poller import LoginPoller
from gateway.net.syscalls import MOST_EVENTS
from gateway.net.turn import Schedule, Turn
from gateway.net.turn_watch import LONG_PART_S, TurnWatch

_log = Logger()

#: For how many seconds a turn goes on in which as many sockets are ready as one look tells; the others are next, as
#: epoll reports in rounds. Without a bound 3,000 clients that logged in at once made one turn of 323 ms. While many
#: have little to say a turn does not end sooner: 5,000 would pay 40 times over for what each turn costs beside.
LONG_TURN_S: Final = 0.005

#: How many connections each listener accepts in one turn, how many of those that have not logged in are served, and how
#: many of those that ended are told so; the latter two for ``LONG_TURN_S`` at most. The others wait where they cost
#: nothing. In a storm of 5,000 clients that come back, or leave at once, the others would wait for all of them (337 and
#: 240 ms).
MOST_ACCEPTED: Final = 8
MOST_NEWCOMERS: Final = 32
MOST_LEAVING: Final = 32

#: How long a ``Wait`` tells them when there may be more.
_MANY: Final = 2 * MOST_EVENTS

#: What nearly all events are: there is something to read.
_READABLE: Final = int(EPOLLIN)

#: Until when to wait: not at all, and as long as nothing is due.
_NOT: Final = 0.0
_FOR_EVER: Final = math.inf


class Loop(Schedule):
    """Serves the events of one reactor.

    ``leaving`` are the connections that ended and are to be told so, with what Twisted wants to know. ``due`` are the
    turns that end once the events at hand were served, ``busy`` those with input left over. ``is_stopping`` is set when
    the reactor is to stop, ``soonest`` is forgotten when delayed calls change their order.
    """

    __slots__ = ("_lines", "_login_poller", "_reactor", "busy", "due", "is_stopping", "leaving", "soonest", "watch")

    def __init__(self, reactor: Any, login_poller: LoginPoller) -> None:  # Any: Twisted's reactors have no types
        self._reactor = reactor
        self._login_poller = login_poller
        self._lines: list[ConnectionIO | None] = []  # by descriptor: those are small numbers
        self.leaving: list[tuple[Any, ...]] = []
        self.busy: list[Turn] = []
        self.due: list[Turn] = []
        self.watch = TurnWatch()
        self.is_stopping = False
        self.soonest: Any = None

    def end_soon(self, turn: Turn) -> None:
        """End a turn once the events at hand were served; before the next poll in any case."""
        self.due.append(turn)

    def go_on_soon(self, turn: Turn) -> None:
        """Go on with the input left over by a turn once those who are ready now were served."""
        self.busy.append(turn)

    def read_by(self, line: ConnectionIO, descriptor: int) -> None:
        """Have a socket read by a line from now on."""
        lines = self._lines
        while len(lines) <= descriptor:
            lines.append(None)
        lines[descriptor] = line

    def read_by_reactor(self, descriptor: int) -> None:
        """Have whatever gets this descriptor read as the reactor reads."""
        if descriptor < len(self._lines):
            self._lines[descriptor] = None

    def run(self, delay_s: float | None) -> None:
        """Serve turn after turn until the reactor itself has something to do.

        Going back to Twisted's main loop after each turn would cost as much as an answer to a single small packet.
        """
        reactor, leaving, due, wait, watch = self._reactor, self.leaving, self.due, self._login_poller.wait, self.watch
        # Twisted makes new ones of these only where this loop is not running.
        thread_calls: list[Any] = reactor.threadCallQueue
        timed_calls: list[Any] = reactor.timed_calls
        new_timed_calls: list[Any] = reactor.new_timed_calls
        self.soonest = None
        until_s: Any = _FOR_EVER
        if delay_s is not None:
            until_s = time.time() + delay_s if delay_s > 0 else _NOT
        while True:
            ready = wait(_NOT if leaving or self.busy else until_s, MOST_EVENTS)
            if ready is None:
                return
            started_s = monotonic_s()
            if len(ready) < _MANY:
                self._serve_all(ready)
            else:
                self._serve_many(ready)
            if leaving:
                reactor.notify_closed(MOST_LEAVING)
                self._blame_ends(started_s)
            if due:
                self.end_turns()
            if self.busy:
                self._go_on()
                watch.ended(monotonic_s() - started_s)
                return
            watch.ended(monotonic_s() - started_s)
            if not ready or leaving or thread_calls or new_timed_calls or due or self.is_stopping:
                return
            if not timed_calls:
                until_s = _FOR_EVER
            elif timed_calls[0] is not self.soonest:
                self.soonest = timed_calls[0]
                until_s = self.soonest.time

    def end_turns(self) -> None:
        """End the turns that are due; one that goes on meanwhile is due next time."""
        for _ in range(len(self.due)):
            try:
                self.due.pop(0).end()
            except Exception:  # one's fault must not stop the loop, and the others still have to end
                _log.failure("at the end of a turn")

    def _go_on(self) -> None:
        """Serve what turns left over, for as long as their budgets last, and say what came of it."""
        busy, self.busy = self.busy, []
        for turn in busy:
            turn.go_on()
        if self.due:
            self.end_turns()

    def _serve_many(self, ready: tuple[int, ...]) -> None:
        """Serve these, and go on with the same turn while more are ready and it is still short."""
        ends_s = self._reactor.seconds() + LONG_TURN_S
        self._serve_all(ready)
        while len(ready) == _MANY and self._reactor.seconds() < ends_s:
            ready = self._login_poller.wait(_NOT, MOST_EVENTS) or ()
            self._serve_all(ready)

    def _serve_all(self, ready: tuple[int, ...]) -> None:
        """Serve descriptors, each followed by its events."""
        lines = self._lines
        before_s = monotonic_s()
        for at in range(0, len(ready), 2):
            descriptor, event = ready[at], ready[at + 1]
            try:
                line = lines[descriptor] if event == _READABLE and descriptor < len(lines) else None
                if line is None:
                    self._serve(descriptor, event)
                elif (why := line.read()) is not None:
                    self._reactor.disconnect(descriptor, why)
            except Exception:  # one connection's fault must not stop the loop; Twisted's own loop guards likewise
                _log.failure("while serving a connection")
            now_s = monotonic_s()
            if now_s - before_s > LONG_PART_S:
                self._blame(descriptor, now_s - before_s)
            before_s = now_s

    def _blame(self, descriptor: int, seconds: float) -> None:
        """Note a connection that took long."""
        line = self._lines[descriptor] if descriptor < len(self._lines) else None
        self.watch.part("serving a listener" if line is None else f"connection {line.who}", seconds)

    def _blame_ends(self, started_s: float) -> None:
        """Note a turn that the ends of connections made long so far."""
        seconds = monotonic_s() - started_s
        if seconds > 2 * LONG_PART_S:
            self.watch.part("connections that ended", seconds)

    def _serve(self, descriptor: int, event: int) -> None:
        """Serve what is no line, or has more to say than that there is something to read."""
        selectable = self._reactor.selectable(descriptor)
        if selectable is not None:
            self._reactor.serve(selectable, descriptor, event)
        elif descriptor == self._login_poller.door:
            self._serve_newcomers()

    def _serve_newcomers(self) -> None:
        """Serve some connections that have not logged in, for as long as a turn may be; a login may cost much."""
        ready = self._login_poller.newcomers(MOST_NEWCOMERS)
        ends_s = monotonic_s() + LONG_TURN_S
        for at in range(0, len(ready), 2):
            self._serve_all(ready[at : at + 2])
            if monotonic_s() >= ends_s:
                return
