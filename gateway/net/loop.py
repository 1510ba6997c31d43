"""The reactor's poll loop: wait for events, serve those of one turn, end the turn, repeat.

The stock loop wraps each event in a logging context and would need a delayed call for the end of a turn. With thousands
of connections and little traffic on each, that is half of the cost of a message (measured: 8.4 to 5.5 µs). A single
small packet is a turn of its own, so values needed in each turn are kept in locals.
"""

import math
import time
from select import EPOLLIN
from time import monotonic as monotonic_s
from typing import Any, Final, TypeVar

from twisted.logger import Logger

from gateway.net.connection_io import ConnectionIO
from gateway.net.login_poller import LoginPoller
from gateway.net.plain_transport import PlainTransport
from gateway.net.socket_writer import NO_DESCRIPTOR
from gateway.net.syscalls import MOST_EVENTS
from gateway.net.turn import Schedule, Turn
from gateway.net.turn_watch import LONG_PART_S, TurnWatch

T = TypeVar("T")

_log = Logger()

#: Seconds for which a turn continues to poll while each poll returns the maximum of events; epoll reports in rounds, so
#: that the next poll returns other sockets. Without a limit, 3,000 clients that logged in at once made one turn of 323
#: ms. A shorter turn is no gain: 5,000 connections with little traffic would pay the fixed cost of a turn 40 times.
LONG_TURN_S: Final = 0.005

#: Limits of one turn: connections accepted by each listener, connections served that have not logged in, and closed
#: connections whose protocols are notified. The latter two stop after ``LONG_TURN_S`` as well. The rest wait for a
#: later turn. Without limits, established connections would wait for a storm of 5,000 clients that reconnect, or leave
#: at once (337 and 240 ms).
MOST_ACCEPTED: Final = 8
MOST_NEWCOMERS: Final = 32
MOST_LEAVING: Final = 32

#: The length of the result of a wait that is full: there may be more events.
_MANY: Final = 2 * MOST_EVENTS

#: The most frequent event: the descriptor is readable.
_READABLE: Final = int(EPOLLIN)

#: Ends of a wait whose difference is smaller are the same one, in seconds.
_SAME_S: Final = 0.001

#: Ends of a wait: return at once, and wait until an event.
_NOT: Final = 0.0
_FOR_EVER: Final = math.inf


class Loop(Schedule):
    """Serves the events of one reactor.

    ``leaving``: closed connections whose protocols have to be notified, with Twisted's arguments. ``due``: the turn to
    end after the events at hand; further ones are in ``_also_due``. A process has one turn, unless tests run several
    brokers in it, and a list that is filled and emptied costs two allocations each time. ``busy``: turns with input
    left over. ``is_stopping`` is set when the reactor has to stop. ``soonest`` is reset when the order of delayed calls
    changes.
    """

    __slots__ = (
        "_also_due",
        "_ios",
        "_only_served",
        "_part",
        "_plain",
        "_reactor",
        "busy",
        "due",
        "is_stopping",
        "leaving",
        "login_poller",
        "soonest",
        "watch",
    )

    def __init__(self, reactor: Any, login_poller: LoginPoller) -> None:  # Any: Twisted's reactors have no types
        self._reactor = reactor
        self.login_poller = login_poller
        self._ios: list[ConnectionIO | None] = []  # indexed by descriptor, a small number
        self._plain: list[PlainTransport | None] = []  # likewise
        self.leaving: list[tuple[Any, ...]] = []
        self.busy: list[Turn] = []
        self.due: Turn | None = None
        self._also_due: list[Turn] = []
        self.watch = TurnWatch()
        self._part = self.watch.stopwatch.part
        self._only_served = NO_DESCRIPTOR  # the descriptor of a turn with a single event
        self.is_stopping = False
        self.soonest: Any = None

    def end_soon(self, turn: Turn) -> None:
        """End a turn after the events at hand were served, and before the next poll."""
        if self.due is None:
            self.due = turn
        else:
            self._also_due.append(turn)

    def go_on_soon(self, turn: Turn) -> None:
        """Continue with a turn's leftover input after the next poll."""
        self.busy.append(turn)

    def read_by(self, io: ConnectionIO, descriptor: int) -> None:
        """Let a ``ConnectionIO`` read this socket from now on."""
        _put(self._ios, descriptor, io)

    def read_by_reactor(self, descriptor: int) -> None:
        """Let the reactor read this descriptor again; called before the descriptor may be reused."""
        if descriptor < len(self._ios):
            self._ios[descriptor] = None

    def serve_plain(self, transport: PlainTransport, io: ConnectionIO, descriptor: int) -> None:
        """Let a ``ConnectionIO`` read this socket, and its transport serve other events, from now on."""
        self.read_by(io, descriptor)
        _put(self._plain, descriptor, transport)

    def forget_plain(self, descriptor: int) -> None:
        """Serve this descriptor no more; called before it may be reused."""
        if descriptor < len(self._plain):
            self._plain[descriptor] = None
            self._ios[descriptor] = None

    def plain_transports(self) -> list[PlainTransport]:
        """Return the open plain transports."""
        return [transport for transport in self._plain if transport is not None]

    def ended(self, transport: PlainTransport, why: Any) -> None:
        """Notify the protocol of a connection that has ended, as one of few in a turn."""
        self.leaving.append((transport, why))

    def _plain_at(self, descriptor: int) -> PlainTransport | None:
        plain = self._plain
        return plain[descriptor] if descriptor < len(plain) else None

    def run(self, delay_s: float | None) -> None:
        """Serve turns until the reactor itself has work to do.

        Returning to Twisted's main loop after each turn would cost as much as the answer to a small packet.
        """
        reactor, leaving = self._reactor, self.leaving
        wait_for_turn, stopwatch = self.login_poller.waiter.wait_for_turn, self.watch.stopwatch
        # Twisted replaces these lists only while this loop is not running.
        thread_calls: list[Any] = reactor.threadCallQueue
        timed_calls: list[Any] = reactor.timed_calls
        new_timed_calls: list[Any] = reactor.new_timed_calls
        self.soonest = None
        until_s: Any = self._end_of_wait(delay_s, timed_calls)
        while True:
            ready = wait_for_turn(_NOT if leaving or self.busy else until_s, MOST_EVENTS, stopwatch)
            if not isinstance(ready, tuple):
                if ready is None:
                    return
                self._ended(ready)
                continue
            self._only_served = NO_DESCRIPTOR
            if len(ready) == 2:  # one event: the turn's length is its own
                self._only_served = ready[0]
                self._serve_one(ready[0], ready[1])
            elif len(ready) < _MANY:
                self._serve_all(ready)
            else:
                self._serve_many(ready)
            if leaving:
                self._notify_closed()
            if self.due is not None:
                self.end_turns()
            is_busy = len(self.busy) > 0
            if is_busy:
                self._go_on()
            if (
                is_busy
                or not ready
                or leaving
                or thread_calls
                or new_timed_calls
                or self.due is not None
                or self.is_stopping
            ):
                if (seconds := stopwatch.stop()) is not None:
                    self._ended(seconds)
                return
            if not timed_calls:
                until_s = _FOR_EVER
            elif timed_calls[0] is not self.soonest:
                self.soonest = timed_calls[0]
                until_s = self.soonest.time

    def _end_of_wait(self, delay_s: float | None, timed_calls: list[Any]) -> float:
        """Return the time at which the first wait ends: exactly that of the first delayed call if it is meant.

        A time that differs by the microseconds between two readings of the clock would set the timer anew.
        """
        if delay_s is None:
            return _FOR_EVER
        if delay_s <= 0:
            return _NOT
        until_s = time.time() + delay_s
        if timed_calls and abs(timed_calls[0].time - until_s) < _SAME_S:
            self.soonest = timed_calls[0]
            return float(self.soonest.time)
        return until_s

    def _ended(self, seconds: float) -> None:
        """Report the length of a turn to the turn watch. A long turn with a single event is that event's."""
        if seconds > LONG_PART_S and self._only_served != NO_DESCRIPTOR:
            self._report_slow(self._only_served, seconds)
        self.watch.ended(seconds)

    def end_turns(self) -> None:
        """End the turns that are due. A turn that becomes due meanwhile is ended next time."""
        due, self.due = self.due, None
        if due is not None:
            self._end(due)
        if self._also_due:
            also_due, self._also_due = self._also_due, []
            for turn in also_due:
                self._end(turn)

    def _end(self, turn: Turn) -> None:
        try:
            turn.end()
        except Exception:  # an error in one turn must not stop the loop or the other turns
            _log.failure("error at the end of a turn")

    def _go_on(self) -> None:
        """Continue with leftover input, within the turns' budgets, and end the turns that become due."""
        busy, self.busy = self.busy, []
        for turn in busy:
            turn.go_on()
        if self.due is not None:
            self.end_turns()

    def _serve_many(self, ready: tuple[int, ...]) -> None:
        """Serve these events, and poll again in the same turn while polls are full and the turn is short."""
        ends_s = self._reactor.seconds() + LONG_TURN_S
        self._serve_all(ready)
        while len(ready) == _MANY and self._reactor.seconds() < ends_s:
            ready = self.login_poller.waiter.wait(_NOT, MOST_EVENTS) or ()
            self._serve_all(ready)

    def _serve_all(self, ready: tuple[int, ...]) -> None:
        """Serve the events: descriptors, each followed by its flags."""
        for at in range(0, len(ready), 2):
            self._serve_one(ready[at], ready[at + 1])
            if (seconds := self._part()) is not None:
                self._report_slow(ready[at], seconds)

    def _serve_one(self, descriptor: int, event: int) -> None:
        ios = self._ios
        try:
            io = ios[descriptor] if event == _READABLE and descriptor < len(ios) else None
            if io is None:
                self._serve(descriptor, event)
            elif (why := io.read()) is not None:
                self._disconnect(descriptor, why)
        except Exception:  # an error of one connection must not stop the loop; Twisted's own loop does likewise
            _log.failure("error while serving a connection")

    def _disconnect(self, descriptor: int, why: Any) -> None:
        """Stop polling a connection whose socket has ended."""
        transport = self._plain_at(descriptor)
        if transport is None:
            self._reactor.disconnect(descriptor, why)
        else:
            transport.end(why)

    def _report_slow(self, descriptor: int, seconds: float) -> None:
        """Report a connection that took long to the turn watch."""
        io = self._ios[descriptor] if descriptor < len(self._ios) else None
        if io is None:
            self.watch.part("listener", seconds)
        else:
            io.took(seconds)
            self.watch.part(f"connection {io.connection_name}", seconds)

    def _notify_closed(self) -> None:
        """Notify the protocols of some closed connections; report it to the turn watch if that takes long."""
        self._part()
        self._reactor.notify_closed(MOST_LEAVING)
        if (seconds := self._part()) is not None:
            self.watch.part("connections that ended", seconds)

    def _serve(self, descriptor: int, event: int) -> None:
        """Serve a descriptor without a ``ConnectionIO``, or an event other than readability."""
        transport = self._plain_at(descriptor)
        if transport is not None:
            if (why := transport.serve(event)) is not None:
                transport.end(why)
        elif descriptor == self.login_poller.inner_descriptor:
            self._serve_newcomers()
        elif (selectable := self._reactor.selectable(descriptor)) is not None:
            self._reactor.serve(selectable, descriptor, event)

    def _serve_newcomers(self) -> None:
        """Serve connections that have not logged in, for at most ``LONG_TURN_S``; a login can be expensive."""
        ready = self.login_poller.newcomers(MOST_NEWCOMERS)
        ends_s = monotonic_s() + LONG_TURN_S
        for at in range(0, len(ready), 2):
            self._serve_all(ready[at : at + 2])
            if monotonic_s() >= ends_s:
                return


def _put(served: list[T | None], descriptor: int, one: T) -> None:
    """Put what serves a descriptor into the list for it, which grows as far as needed."""
    while len(served) <= descriptor:
        served.append(None)
    served[descriptor] = one
