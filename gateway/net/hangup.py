"""Detection of a peer that is gone while nothing is read from it: the system reports this without a read."""

import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer  # type: ignore[import-untyped]  # it has no types

#: The peer closed its side in order; there may be more to read before the end.
FAREWELL: Final = int(select.POLLRDHUP)

#: The connection is broken: reading and writing are impossible.
BROKEN: Final = int(select.POLLHUP | select.POLLERR | select.POLLNVAL)

#: TCP keep-alive: idle time, interval (seconds) and number of probes. A host that is gone is noticed after a minute.
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


def socket_of(transport: Any) -> Any:  # Any: Twisted's interfaces are not types
    """Return the socket below a transport and its layers, TLS and WebSocket; ``None`` if there is none."""
    while (below := getattr(transport, "transport", None)) is not None:
        transport = below
    return getattr(transport, "socket", None)


def keep_alive(transport: Any) -> None:
    """Enable TCP keep-alive."""
    if (below := socket_of(transport)) is not None:
        for level, option, value in _KEEP_ALIVE:
            below.setsockopt(level, option, value)


def hang_up_of(transport: Any) -> int:
    """Return ``FAREWELL``, ``BROKEN`` or both when the peer is gone; 0 while it is connected."""
    below = socket_of(transport)
    if below is None or below.fileno() < 0:
        return 0
    poll = select.poll()
    poll.register(below, select.POLLRDHUP)
    events = poll.poll(0)
    return (events[0][1] & (FAREWELL | BROKEN)) if events else 0


@implementer(IReadDescriptor)
class HangUpWatch:
    """Reports at once which peers are gone, of connections that are not read.

    It polls their sockets for nothing else, and is itself one descriptor of the reactor while it watches any. A peer
    that has closed its side only is gone too: the system does not tell the two apart.
    """

    def __init__(self, reactor: Any, gone: Callable[[Any], None]) -> None:  # Any: Twisted's interfaces are not types
        self._reactor = reactor
        self._gone = gone
        self._watched: dict[int, Any] = {}
        self._numbers: dict[Any, int] = {}
        self._poll: select.epoll | None = None

    def add(self, connection: Any) -> None:
        """Watch the peer of a protocol."""
        below = socket_of(connection.transport)
        if below is None or below.fileno() < 0:
            return
        if self._poll is None:
            self._poll = select.epoll()
            self._reactor.addReader(self)
        self._poll.register(below.fileno(), select.EPOLLRDHUP)
        self._watched[below.fileno()] = connection
        self._numbers[connection] = below.fileno()

    def remove(self, connection: Any) -> None:
        """Watch the peer of a protocol no more; harmless if it is not watched, and if its socket is closed."""
        number = self._numbers.pop(connection, None)
        if number is None or self._poll is None:
            return
        del self._watched[number]
        with suppress(OSError):  # a closed socket has left the poll by itself
            self._poll.unregister(number)
        if not self._watched:
            self._reactor.removeReader(self)
            self._poll.close()
            self._poll = None

    def fileno(self) -> int:
        """Return the descriptor of the poll."""
        return -1 if self._poll is None else self._poll.fileno()

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Report who is gone."""
        for number, _ in [] if self._poll is None else self._poll.poll(0):
            if (connection := self._watched.get(number)) is not None:
                self.remove(connection)
                self._gone(connection)

    def connectionLost(self, reason: object) -> None:
        """Do nothing: the descriptor is its own."""

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """Return the name in Twisted's log."""
        return "hang-ups"
