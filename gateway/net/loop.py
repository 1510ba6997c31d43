"""The reactor's poll loop: waits for events, serves those of one turn and ends it, again and again.

The stock loop wraps each readiness in a logging context and would need a delayed call for the end of a turn. With
thousands of connections that say little each, that is half of the cost of a message (measured: 8.4 to 5.5 µs). A small
packet alone is a turn of its own, so what a turn needs is in locals, and what is Twisted's is asked for once.
"""

import errno
from collections import deque
from collections.abc import Callable
from select import EPOLLIN
from typing import Any, Final

from twisted.logger import Logger

from gateway.net.antechamber import Antechamber
from gateway.net.line import Line

_log = Logger()

#: How many sockets are served between two looks at the clock, and for how many seconds one turn goes on; the others are
#: next, as epoll reports in rounds. Without a bound 3,000 clients that logged in at once made one turn of 323 ms. While
#: many have little to say a turn does not end sooner: 5,000 would pay 40 times over for what each turn costs beside.
MOST_EVENTS: Final = 128
LONG_TURN_S: Final = 0.005

#: How many newcomers each listener lets in during one turn, how many of those who have not logged in yet are served,
#: and how many of those who left are seen off. The others wait where they cost nothing. In a storm of 5,000 clients who
#: come back, or leave at once, whoever stayed would otherwise wait for all of them (337 and 240 ms).
MOST_NEWCOMERS: Final = 32
MOST_LEAVING: Final = 32

#: How long to wait when nothing is due, in seconds.
_FOR_EVER_S: Final = 3600.0


class Loop:
    """Serves the events of one reactor.

    ``line_by_descriptor`` are the connections whose sockets are read by their lines, ``leaving`` those that ended and
    are to be told so, with what Twisted wants to know. ``calls`` are due at the end of the turn. ``is_stopping`` is set
    when the reactor is to stop.
    """

    __slots__ = ("_antechamber", "_reactor", "calls", "is_stopping", "leaving", "line_by_descriptor")

    def __init__(self, reactor: Any, antechamber: Antechamber) -> None:  # Any: Twisted's reactors have no types
        self._reactor = reactor
        self._antechamber = antechamber
        self.line_by_descriptor: dict[int, Line] = {}
        self.leaving: deque[tuple[Any, ...]] = deque()
        self.calls: list[Callable[[], None]] = []
        self.is_stopping = False

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        """Call once after the events at hand were served; before the next poll in any case."""
        self.calls.append(call)

    def run(self, delay_s: float | None) -> None:
        """Serve turn after turn until the reactor itself has something to do.

        Going back to Twisted's main loop after each turn would cost as much as an answer to a single small packet.
        """
        reactor, leaving, poll = self._reactor, self.leaving, self._antechamber.settled.poll
        # Twisted makes new ones of these only where this loop is not running.
        thread_calls, new_timed_calls = reactor.threadCallQueue, reactor._newTimedCalls
        timed_calls, seconds = reactor._pendingTimedCalls, reactor.seconds
        timeout_s = _FOR_EVER_S if delay_s is None or delay_s < 0 else delay_s
        while True:
            try:
                ready: list[tuple[int, int]] = poll(0 if leaving else timeout_s, MOST_EVENTS)
            except OSError as error:
                if error.errno == errno.EINTR:
                    return
                raise
            if len(ready) < MOST_EVENTS:
                self._serve_all(ready)
            else:
                self._serve_many(ready)
            if leaving:
                reactor.see_off(MOST_LEAVING)
            if self.calls:
                self.end_turn()
            if not ready or thread_calls or new_timed_calls or self.calls or self.is_stopping:
                return
            if timed_calls:
                timeout_s = timed_calls[0].time - seconds()
                if timeout_s <= 0:
                    return

    def end_turn(self) -> None:
        """Make the calls that are due."""
        calls, self.calls = self.calls, []
        for call in calls:
            try:
                call()
            except Exception:  # one's fault must not stop the loop, and what is left of the turn still has to end
                _log.failure("at the end of a turn")

    def _serve_many(self, ready: list[tuple[int, int]]) -> None:
        """Serve these, and go on with the same turn while more are ready and it is still short."""
        ends_s = self._reactor.seconds() + LONG_TURN_S
        self._serve_all(ready)
        while len(ready) == MOST_EVENTS and self._reactor.seconds() < ends_s:
            ready = self._antechamber.poll(0, MOST_EVENTS)
            self._serve_all(ready)

    def _serve_all(self, ready: list[tuple[int, int]]) -> None:
        lines = self.line_by_descriptor
        for descriptor, event in ready:
            try:
                line = lines.get(descriptor) if event == EPOLLIN else None  # what there is to nearly all events
                if line is None:
                    self._serve(descriptor, event)
                elif why := line.read():
                    self._reactor.disconnect(descriptor, why)
            except Exception:  # one connection's fault must not stop the loop; Twisted's own loop guards likewise
                _log.failure("while serving a connection")

    def _serve(self, descriptor: int, event: int) -> None:
        """Serve what is no line, or has more to say than that there is something to read."""
        selectable = self._reactor._selectables.get(descriptor)
        if selectable is not None:
            self._reactor._doReadOrWrite(selectable, descriptor, event)
        elif descriptor == self._antechamber.door:
            self._serve_all(self._antechamber.poll_newcomers(MOST_NEWCOMERS))
