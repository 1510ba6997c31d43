"""Twisted's epoll reactor with a lean poll loop that ends every turn by itself.

The stock loop wraps each readiness in a logging context and would need a delayed call for the end of a turn. With
thousands of connections that say little each, that is half of the cost of a message (measured: 8.4 to 5.5 µs).
"""

import errno
from collections import deque
from collections.abc import Callable
from select import EPOLLIN
from typing import Any, Final

from twisted.internet import epollreactor, tcp
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST, installReactor
from twisted.logger import Logger

from gateway.net.antechamber import Antechamber

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


class Guest(tcp.Server):
    """A connection that somebody made to us, read from without a detour.

    It is served after those who were let in, until it is so itself.
    """

    def let_in(self) -> None:
        """Serve it with the others from now on: its peer said who it is."""
        self.reactor.antechamber.let_in(self.fileno())

    def doRead(self) -> Any:  # noqa: N802 - Twisted's name
        """Read once; return why the connection is over, or ``None``."""
        try:
            data = self.socket.recv(self.bufferSize)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        if not data:
            return CONNECTION_DONE
        receiver: Any = self.protocol
        receiver.dataReceived(data)
        return None


class Door(tcp.Port):
    """A listening socket that lets few in at a time."""

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Accept connections."""
        self.numberAccepts = min(self.numberAccepts, MOST_NEWCOMERS)
        antechamber = self.reactor.antechamber
        antechamber.while_admitting = True
        try:
            super().doRead()  # type: ignore[no-untyped-call]  # Twisted's
        finally:
            antechamber.while_admitting = False


class TurnReactor(epollreactor.EPollReactor):
    """Calls ``end_of_turn`` functions once after the events of each poll were served.

    Those who come and those who go are served a few in each turn; ``antechamber`` is where the first wait.
    """

    def __init__(self) -> None:
        self.antechamber = Antechamber()
        self._turn_calls: list[Callable[[], None]] = []
        self._leaving: deque[tuple[Any, ...]] = deque()
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        stock, self._poller = self._poller, self.antechamber
        stock.close()
        for descriptor in self._reads:  # what Twisted wakes itself up with
            self._poller.register(descriptor, EPOLLIN)

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Door:  # noqa: N802 - Twisted's
        """Take connections at a port."""
        door = Door(port, factory, backlog, interface, self)
        door.transport = Guest
        door.startListening()
        return door

    def at_end_of_turn(self, call: Callable[[], None]) -> None:
        """Call once after the events at hand were served; before the next poll in any case."""
        self._turn_calls.append(call)

    def runUntilCurrent(self) -> None:  # noqa: N802 - Twisted's name
        """Run delayed and threaded calls, then end the turn they belong to."""
        super().runUntilCurrent()
        if self._turn_calls:
            self._end_turn()

    def timeout(self) -> Any:
        """Do not sleep while a turn waits for its end."""
        return 0 if self._turn_calls or self._leaving else super().timeout()

    def doIteration(self, delay: float | None) -> None:
        """Wait for events, serve those of one turn and end it, again and again until something else is to be done.

        Going back to Twisted's main loop after each turn would cost as much as an answer to a single small packet.
        """
        timeout = _FOR_EVER_S if delay is None or delay < 0 else delay
        while True:
            try:
                ready = self._poller.poll(0 if self._leaving else timeout, MOST_EVENTS)
            except OSError as error:
                if error.errno == errno.EINTR:
                    return
                raise
            if len(ready) < MOST_EVENTS:
                self._serve_all(ready)
            else:
                self._serve_many(ready)
            if self._leaving:
                self._see_off()
            if self._turn_calls:
                self._end_turn()
            if not ready or self.threadCallQueue or self._newTimedCalls or self._justStopped or self._turn_calls:
                return
            if self._pendingTimedCalls:
                timeout = self._pendingTimedCalls[0].time - self.seconds()
                if timeout <= 0:
                    return

    def _serve_many(self, ready: list[tuple[int, int]]) -> None:
        """Serve these, and go on with the same turn while more are ready and it is still short."""
        ends_s = self.seconds() + LONG_TURN_S
        self._serve_all(ready)
        while len(ready) == MOST_EVENTS and self.seconds() < ends_s:
            ready = self._poller.poll(0, MOST_EVENTS)
            self._serve_all(ready)

    def _serve_all(self, ready: list[tuple[int, int]]) -> None:
        selectables = self._selectables
        for descriptor, event in ready:
            selectable = selectables.get(descriptor)
            if selectable is None:
                if descriptor == self.antechamber.door:
                    self._serve_all(self.antechamber.poll_newcomers(MOST_NEWCOMERS))
                continue
            if event != EPOLLIN:
                self._serve(selectable, descriptor, event)
                continue
            try:  # what there is to nearly all events
                why = selectable.doRead()
            except Exception as error:
                _log.failure("while serving a connection")
                why = error
            if why:
                self._disconnectSelectable(selectable, why, True)

    def _serve(self, selectable: Any, descriptor: int, event: int) -> None:
        try:
            self._doReadOrWrite(selectable, descriptor, event)  # type: ignore[no-untyped-call]  # Twisted's
        except Exception:  # one connection's fault must not stop the loop; Twisted's own loop guards likewise
            _log.failure("while serving a connection")

    def _disconnectSelectable(  # noqa: N802 - Twisted's name
        self, selectable: Any, why: Any, *rest: Any
    ) -> None:
        """Hear no more of a connection that ended; its end is told to it soon."""
        self.removeReader(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self.removeWriter(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self._leaving.append((selectable, why, *rest))

    def disconnectAll(self) -> None:  # noqa: N802 - Twisted's name
        """End all connections, those first that ended by themselves."""
        while self._leaving:
            self._see_off()
        super().disconnectAll()

    def _see_off(self) -> None:
        """Tell some of the connections that ended."""
        for _ in range(min(len(self._leaving), MOST_LEAVING)):
            try:
                super()._disconnectSelectable(*self._leaving.popleft())  # type: ignore[no-untyped-call]  # Twisted's
            except Exception:  # as above
                _log.failure("at the end of a connection")

    def _end_turn(self) -> None:
        calls, self._turn_calls = self._turn_calls, []
        for call in calls:
            try:
                call()
            except Exception:  # as above: what is left of the turn still has to end
                _log.failure("at the end of a turn")


def install() -> TurnReactor:
    """Make this the process's reactor."""
    reactor = TurnReactor()
    installReactor(reactor)  # type: ignore[no-untyped-call]  # Twisted's
    return reactor
