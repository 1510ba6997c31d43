"""Detection of a peer that is gone while nothing is read from it: the system reports this without a read."""

import select
import socket
from typing import Any, Final

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
