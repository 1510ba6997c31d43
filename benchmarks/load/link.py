"""A connection in the measured path: whatever can be sent or read at once, and nothing that waits."""

import select
import socket
from time import perf_counter
from typing import Final, Protocol

#: No answer for this long means the broker hangs, not that it is slow.
TIMEOUT_S: Final = 60.0
#: Large enough that a fast broker's deliveries are fetched some hundred at a time.
READ_BYTES: Final = 512 * 1024


class Endpoint(Protocol):
    """What the driving loop calls when a link has something to read or room to write again."""

    link: "Link"

    def read(self) -> None:
        """Take in what has arrived."""

    def write(self) -> None:
        """Send what is allowed to go out now."""


class Link:
    """A socket made non-blocking and registered with the driving loop's epoll.

    It asks to be told about room to write only while a send came up short:
    the registration changes seldom, so a send costs one system call.
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
        """Send as much as the socket takes; fewer bytes than given leave the link full."""
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
        """The socket takes bytes again."""
        self.is_full = False
        self._poll.modify(self.descriptor, select.EPOLLIN)

    def receive(self) -> memoryview:
        """Read once; the result is valid until the next call."""
        size = self._socket.recv_into(self._buffer)
        if size == 0:
            raise ConnectionError("the broker closed a connection under load")
        return self._view[:size]

    def release(self) -> None:
        """Give the socket back to blocking use."""
        self._poll.unregister(self.descriptor)
        self._socket.settimeout(TIMEOUT_S)


class Progress:
    """How far a counted stream of messages was at which time; one entry a system call."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.times: list[float] = []

    def reached(self, count: int) -> None:
        """Note that ``count`` messages have passed now."""
        self.counts.append(count)
        self.times.append(perf_counter())
