"""Whether a peer that is not read from is still there: the system knows that without reading."""

import select
import socket
from typing import Any, Final

#: The peer said goodbye in order: there may be more to read before it.
FAREWELL: Final = int(select.POLLRDHUP)

#: The connection is broken: nothing can be read or written any more.
BROKEN: Final = int(select.POLLHUP | select.POLLERR | select.POLLNVAL)

#: A peer whose machine vanished is noticed after a minute: idle time, interval (seconds) and number of probes.
_KEEP_ALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


def socket_of(transport: Any) -> Any:  # Any: Twisted's interfaces are not types
    """Return the socket below a transport and the layers around it, TLS and WebSocket; ``None`` if there is none."""
    while (below := getattr(transport, "transport", None)) is not None:
        transport = below
    return getattr(transport, "socket", None)


def keep_alive(transport: Any) -> None:
    """Have the system ask a silent peer whether it is there."""
    if (below := socket_of(transport)) is not None:
        for level, option, value in _KEEP_ALIVE:
            below.setsockopt(level, option, value)


def hang_up_of(transport: Any) -> int:
    """Return ``FAREWELL`` or ``BROKEN``, or both, when the peer is gone; 0 while it is there."""
    below = socket_of(transport)
    if below is None or below.fileno() < 0:
        return 0
    poll = select.poll()
    poll.register(below, select.POLLRDHUP)
    events = poll.poll(0)
    return (events[0][1] & (FAREWELL | BROKEN)) if events else 0
