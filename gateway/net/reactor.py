"""Twisted's epoll reactor with its own poll loop, which ends every turn."""

import os
import socket
from time import monotonic as monotonic_s
from typing import Any, Final

from twisted.internet import tcp
from twisted.internet.main import CONNECTION_LOST, installReactor
from twisted.logger import Logger

from gateway.net.login_poller import LoginPoller
from gateway.net.loop import LONG_TURN_S, MOST_ACCEPTED, MOST_LEAVING, Loop
from gateway.net.peer import PeerProtocol
from gateway.net.plain_transport import PlainTransport
from gateway.net.server_transport import ServerTransport
from gateway.net.syscalls import accept, with_socket
from gateway.net.turn_watch import LONG_PART_S
from gateway.net.twisted_private import StandardReactor

#: The addresses of a port that is bound to all interfaces: the own address differs from connection to connection.
_ANY: Final = ("0.0.0.0", "::")

#: Delayed calls count as a turn if they take longer than this, in seconds.
SHORTEST_COUNTED_S: Final = 0.0001

_log = Logger()


class PeerAddress:
    """The address of a client, as factories see it."""

    __slots__ = ("host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port


class ThrottledPort(tcp.Port):
    """A listening port that accepts few connections in one turn.

    It accepts them itself: Twisted's loop, which expects errors of every kind, takes as long as the system call. A
    protocol that reads the socket itself gets a ``PlainTransport``, others one of Twisted's.
    """

    def startListening(self) -> None:  # noqa: N802 - Twisted's name
        """Listen. Connections inherit that small writes are sent at once."""
        super().startListening()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = self.socket.getsockname()[:2]
        self._bound: tuple[str, int] | None = None if host in _ANY else (host, port)

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
        listener = self.socket.fileno()
        for accepted in range(expected):
            try:
                descriptor, host, port = accept(listener)
            except BlockingIOError:
                self.numberAccepts = max(1, accepted)
                return
            self._serve(descriptor, (host, port))
        self.numberAccepts = 2 * expected

    def _serve(self, descriptor: int, peer: tuple[str, int]) -> None:
        """Serve a connection. An error ends it alone: one that reached Twisted's loop would close the port."""
        try:
            transport = self._transport(descriptor, peer)
        except Exception:
            _log.failure("error before the start of a connection")
            transport = None
        if transport is None:
            os.close(descriptor)
            return
        try:
            transport.protocol.makeConnection(transport)
        except Exception:
            _log.failure("error at the start of a connection")
            transport.abortConnection()

    def _transport(self, descriptor: int, peer: tuple[str, int]) -> Any:  # Any: Twisted's
        """Return the transport of a connection with its protocol; ``None`` if the factory refuses it."""
        factory: Any = self.factory  # Any: Twisted's interfaces are not types
        protocol = factory.buildProtocol(PeerAddress(peer[0], peer[1]))
        if protocol is None:
            return None
        if isinstance(protocol, PeerProtocol):
            host = self._bound or with_socket(descriptor, socket.socket.getsockname)[:2]
            return PlainTransport(descriptor, protocol, peer, host, self.reactor.loop)
        number = self.sessionno
        self.sessionno = number + 1
        connection = socket.socket(fileno=descriptor)
        address = peer if self.addressFamily == socket.AF_INET else (*peer, 0, 0)
        try:
            return ServerTransport(connection, protocol, address, self, number, self.reactor)
        except BaseException:
            connection.detach()  # the caller closes it
            raise


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
        for transport in self.loop.plain_transports():
            self._notify_lost(transport, CONNECTION_LOST)
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
            self._notify_lost(*one)

    def _notify_lost(self, selectable: Any, *reason: Any) -> None:
        """Notify the protocol of a connection. An error of one must not affect the others."""
        try:
            if isinstance(selectable, PlainTransport):
                selectable.lost(reason[0])
            else:
                self.notify_end(selectable, *reason)
        except Exception:
            _log.failure("error at the end of a connection")


def install() -> TurnReactor:
    """Install this reactor as the process's reactor."""
    reactor = TurnReactor()
    installReactor(reactor)  # type: ignore[no-untyped-call]  # Twisted's
    return reactor
