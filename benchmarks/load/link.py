"""A non-blocking connection in the measured path."""

import select
import socket
from time import perf_counter
from typing import Final, Protocol

#: After this long without an answer the broker hangs.
TIMEOUT_S: Final = 60.0
#: Large enough to fetch a fast broker's deliveries some hundred at a time.
READ_BYTES: Final = 512 * 1024


class Endpoint(Protocol):
    """The callbacks of the driving loop when a link is readable or writable."""

    link: "Link"

    def read(self) -> None:
        """Read the available data."""

    def write(self) -> None:
        """Send as much as is allowed now."""


class Link:
    """A socket in non-blocking mode, registered with the driving loop's epoll.

    It registers for writability only while a send was incomplete: the registration changes seldom, so a send costs
    one system call.
    """

    def __init__(self, connection: socket.socket, poll: select.epoll) -> None:
        self._socket = connection
        self._socket.setblocking(False)
        self._poll = poll
        self._poll.register(self.descriptor, select.EPOLLIN)
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self.is_full = False

    @property
    def descriptor(self) -> int:
        """The socket's file descriptor, which epoll reports."""
        return self._socket.fileno()

    def send(self, data: memoryview) -> int:
        """Send as much as the socket accepts; the link is full if that is less than given."""
        if self.is_full:
            return 0
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.is_full = True
            self._poll.modify(self.descriptor, select.EPOLLIN | select.EPOLLOUT)
        return sent

    def has_room(self) -> None:
        """Return whether the socket accepts bytes again."""
        self.is_full = False
        self._poll.modify(self.descriptor, select.EPOLLIN)

    def receive(self) -> memoryview:
        """Read once; the result is valid until the next call."""
        size = self._socket.recv_into(self._buffer)
        if size == 0:
            raise ConnectionError("the broker closed a connection under load")
        return self._view[:size]

    def release(self) -> None:
        """Make the socket blocking again."""
        self._poll.unregister(self.descriptor)
        self._socket.settimeout(TIMEOUT_S)


class Progress:
    """The position of a counted stream of messages over time; one entry for each system call."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.times: list[float] = []

    def reached(self, count: int) -> None:
        """Record that ``count`` messages have passed."""
        self.counts.append(count)
        self.times.append(perf_counter())
