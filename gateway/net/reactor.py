"""Twisted's epoll reactor around a poll loop of our own, which ends every turn by itself."""

from time import monotonic as monotonic_s
from typing import Any, Final

from twisted.internet import tcp
from twisted.internet.main import installReactor
from twisted.logger import Logger

from gateway.net.connection_io import ConnectionIO
from gateway.net.login_poller import LoginPoller
from gateway.net.loop import LONG_TURN_S, MOST_ACCEPTED, MOST_LEAVING, Loop
from gateway.net.turn_watch import LONG_PART_S
from gateway.net.twisted_private import StandardReactor

#: Delayed calls count as a turn if they take longer than this, in seconds.
SHORTEST_COUNTED_S: Final = 0.0001

_log = Logger()


class ServerTransport(tcp.Server):
    """A connection that somebody made to us. It is served after those who were let in, until it is so itself.

    What has a ``ConnectionIO`` is read by that, without a detour through Twisted's classes.
    """

    def let_in(self) -> None:
        """Serve it with the others from now on: its peer said who it is."""
        self.reactor.login_poller.let_in(self.fileno())

    def read_by(self, line: ConnectionIO) -> None:
        """Have its socket read by a line from now on."""
        line.listen(self.fileno())
        self.reactor.loop.read_by(line, self.fileno())

    def connectionLost(self, reason: Any) -> None:
        """It is over; its descriptor, still its own, will be another's."""
        self.reactor.loop.read_by_reactor(self.fileno())
        super().connectionLost(reason)


class ThrottledPort(tcp.Port):
    """A listening socket that lets few in at a time."""

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Accept connections."""
        self.numberAccepts = min(self.numberAccepts, MOST_ACCEPTED)
        login_poller = self.reactor.login_poller
        login_poller.while_admitting = True
        try:
            super().doRead()  # type: ignore[no-untyped-call]  # Twisted's
        finally:
            login_poller.while_admitting = False


class TurnReactor(StandardReactor):
    """Ends each ``Turn`` that is due once the events of a poll were served.

    Those who come and those who go are served a few in each turn; ``login_poller`` is where the first wait.
    """

    def __init__(self) -> None:
        self.login_poller = LoginPoller()
        self.loop = Loop(self, self.login_poller)
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self.use_poller(self.login_poller)

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> ThrottledPort:  # noqa: N802 - Twisted's
        """Take connections at a port."""
        door = ThrottledPort(port, factory, backlog, interface, self)
        door.transport = ServerTransport
        door.startListening()
        return door

    def runUntilCurrent(self) -> None:  # noqa: N802 - Twisted's name
        """Run delayed and threaded calls, then end the turn they belong to."""
        started_s = monotonic_s()
        super().runUntilCurrent()
        seconds = monotonic_s() - started_s
        if seconds > 2 * LONG_PART_S:
            self.loop.watch.part("timers and what threads were done with", seconds)
        if self.loop.due:
            self.loop.end_turns()
        seconds = monotonic_s() - started_s
        if seconds > SHORTEST_COUNTED_S:  # it comes between any two turns, and mostly does nothing
            self.loop.watch.ended(seconds)

    def timeout(self) -> Any:
        """Do not sleep while a turn waits for its end."""
        return 0 if self.loop.due or self.loop.leaving or self.loop.busy else super().timeout()

    def doIteration(self, delay: float | None) -> None:
        """Wait for events and serve them."""
        self.loop.run(delay)

    def call_moved_sooner(self) -> None:
        """Have the loop look at the delayed calls again."""
        self.loop.soonest = None

    def stop(self) -> None:
        """Stop at the end of this turn."""
        super().stop()
        self.loop.is_stopping = True

    def disconnect(self, descriptor: int, why: Any) -> None:
        """Hear no more of a connection whose socket has nothing more to read."""
        selectable = self.selectable(descriptor)
        if selectable is not None:
            self.selectable_ended(selectable, why, True)

    def selectable_ended(self, selectable: Any, *reason: Any) -> None:
        """Stop watching a connection that ended; ``notify_closed`` notifies it."""
        self.removeReader(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self.removeWriter(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self.loop.leaving.append((selectable, *reason))

    def disconnectAll(self) -> None:  # noqa: N802 - Twisted's name
        """End all connections, those first that ended by themselves."""
        while self.loop.leaving:
            self.notify_closed(MOST_LEAVING)
        super().disconnectAll()

    def notify_closed(self, most: int) -> None:
        """Tell some of the connections that ended, for as long as a turn may be."""
        leaving, ends_s = self.loop.leaving, monotonic_s() + LONG_TURN_S
        for _ in range(min(most, len(leaving))):
            if monotonic_s() >= ends_s:
                return
            one = leaving.pop(0)
            if getattr(one[0], "disconnected", False):  # it was aborted meanwhile, or its end was noticed twice
                continue
            try:
                self.notify_end(*one)
            except Exception:  # one's fault must not keep the others
                _log.failure("at the end of a connection")


def install() -> TurnReactor:
    """Make this the process's reactor."""
    reactor = TurnReactor()
    installReactor(reactor)  # type: ignore[no-untyped-call]  # Twisted's
    return reactor
