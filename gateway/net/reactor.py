"""Twisted's epoll reactor with its own poll loop, which ends every turn."""

import socket
from time import monotonic as monotonic_s
from typing import Any, Final

from twisted.internet.main import installReactor
from twisted.logger import Logger

from gateway.net.login_poller import LoginPoller
from gateway.net.loop import LONG_TURN_S, MOST_ACCEPTED, MOST_LEAVING, Loop
from gateway.net.server_transport import ServerTransport
from gateway.net.turn_watch import LONG_PART_S
from gateway.net.twisted_private import StandardPort, StandardReactor

#: Delayed calls count as a turn if they take longer than this, in seconds.
SHORTEST_COUNTED_S: Final = 0.0001

_log = Logger()


class ThrottledPort(StandardPort):
    """A listening port that accepts few connections in one turn.

    It accepts them itself: Twisted's loop, which expects errors of every kind, takes as long as the system call.
    """

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Accept connections."""
        login_poller = self.reactor.login_poller
        login_poller.while_admitting = True
        try:
            self._accept()
        except OSError:  # Twisted knows what to do, as when no descriptor is left
            self.numberAccepts = 1
            super().doRead()  # type: ignore[no-untyped-call]  # Twisted's
        finally:
            login_poller.while_admitting = False

    def _accept(self) -> None:
        """Accept the connections that wait, as many as the last time and more if these were all of them."""
        expected = min(self.numberAccepts, MOST_ACCEPTED)
        for accepted in range(expected):
            try:
                connection, address = self.socket.accept()
            except BlockingIOError:
                self.numberAccepts = max(1, accepted)
                return
            self._serve(connection, address)
        self.numberAccepts = 2 * expected

    def _serve(self, connection: socket.socket, address: tuple[Any, ...]) -> None:
        """Serve a connection. An error ends it alone: one that reached Twisted's loop would close the port."""
        try:
            transport = self._transport(connection, address)
        except Exception:
            _log.failure("error before the start of a connection")
            transport = None
        if transport is None:
            connection.close()
            return
        try:
            transport.protocol.makeConnection(transport)
        except Exception:
            _log.failure("error at the start of a connection")
            transport.abortConnection()

    def _transport(self, connection: socket.socket, address: tuple[Any, ...]) -> Any:  # Any: Twisted's
        """Return the transport of a connection with its protocol; ``None`` if the factory refuses it."""
        if len(address) == 4 and address[3]:  # link-local: the name of its interface is a part of the address
            numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
            address = (socket.getnameinfo(address, numeric)[0], *address[1:])
        factory: Any = self.factory  # Any: Twisted's interfaces are not types
        protocol = factory.buildProtocol(self.address_of(address))
        if protocol is None:
            return None
        number = self.sessionno
        self.sessionno = number + 1
        return ServerTransport(connection, protocol, address, self, number, self.reactor)


class TurnReactor(StandardReactor):
    """A reactor that ends each due ``Turn`` after the events of a poll were served.

    Only a few new and a few closed connections are served in each turn; new ones wait in ``login_poller``.
    """

    def __init__(self) -> None:
        self.login_poller = LoginPoller()
        self.loop = Loop(self, self.login_poller)
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self.use_poller(self.login_poller)

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> ThrottledPort:  # noqa: N802 - Twisted's
        """Listen at a port."""
        listener = ThrottledPort(port, factory, backlog, interface, self)
        listener.transport = ServerTransport
        listener.startListening()
        return listener

    def runUntilCurrent(self) -> None:  # noqa: N802 - Twisted's name
        """Run delayed and threaded calls, then end their turn."""
        started_s = monotonic_s()
        super().runUntilCurrent()
        seconds = monotonic_s() - started_s
        if seconds > 2 * LONG_PART_S:
            self.loop.watch.part("timers and results of threads", seconds)
        if self.loop.due is not None:
            self.loop.end_turns()
        seconds = monotonic_s() - started_s
        if seconds > SHORTEST_COUNTED_S:  # called between any two turns, mostly without work
            self.loop.watch.ended(seconds)

    def timeout(self) -> Any:
        """Return 0 while a turn waits for its end, so that the loop does not sleep."""
        return 0 if self.loop.due is not None or self.loop.leaving or self.loop.busy else super().timeout()

    def doIteration(self, delay: float | None) -> None:
        """Wait for events and serve them."""
        self.loop.run(delay)

    def call_moved_sooner(self) -> None:
        """Let the loop check the delayed calls again."""
        self.loop.soonest = None

    def stop(self) -> None:
        """Stop at the end of this turn."""
        super().stop()
        self.loop.is_stopping = True

    def disconnect(self, descriptor: int, why: Any) -> None:
        """Stop polling a connection whose socket has ended."""
        selectable = self.selectable(descriptor)
        if selectable is not None:
            self.selectable_ended(selectable, why, True)

    def selectable_ended(self, selectable: Any, *reason: Any) -> None:
        """Stop polling a connection that has ended; ``notify_closed`` notifies its protocol."""
        self.removeReader(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self.removeWriter(selectable)  # type: ignore[no-untyped-call]  # Twisted's
        self.loop.leaving.append((selectable, *reason))

    def disconnectAll(self) -> None:  # noqa: N802 - Twisted's name
        """Notify the connections that ended, then end all others."""
        while self.loop.leaving:
            self.notify_closed(MOST_LEAVING)
        super().disconnectAll()

    def notify_closed(self, most: int) -> None:
        """Notify the protocols of some closed connections, for at most ``LONG_TURN_S``."""
        leaving, ends_s = self.loop.leaving, monotonic_s() + LONG_TURN_S
        for _ in range(min(most, len(leaving))):
            if monotonic_s() >= ends_s:
                return
            one = leaving.pop(0)
            if getattr(one[0], "disconnected", False):  # it was aborted meanwhile, or its end was noticed twice
                continue
            try:
                self.notify_end(*one)
            except Exception:  # an error of one connection must not affect the others
                _log.failure("error at the end of a connection")


def install() -> TurnReactor:
    """Install this reactor as the process's reactor."""
    reactor = TurnReactor()
    installReactor(reactor)  # type: ignore[no-untyped-call]  # Twisted's
    return reactor
