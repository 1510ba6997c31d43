"""Harness of one client connection over a socket, independent of the protocol; every wait has a time limit.

Its words are those of ``tests.protocols.peer_harness``. A socket does not show when a turn ends: ``receive_frames``
waits for input, and ``receive_until`` for a frame that the test names.
"""

import socket
import time
from collections.abc import Callable
from select import select
from typing import Final, Generic, Self

from tests.protocols.peer_harness import FrameT, Reader

#: The time limit of every wait, in seconds.
TIMEOUT_S: Final = 15.0


class SocketHarness(Generic[FrameT]):
    """One connection, whose input is read only on request. ``reader`` decodes it."""

    def __init__(self, address: tuple[str, int], reader: Reader[FrameT]) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_at_end = False
        self._reader = reader
        self._received: list[FrameT] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, *frames: bytes) -> Self:
        """Send the frames in one write."""
        self.socket.sendall(b"".join(frames))
        return self

    def receive_frames(self) -> list[FrameT]:
        """Read once; return the complete frames. Set ``is_at_end`` when the broker closed."""
        self._read()
        return self._taken()

    def receive_one(self) -> str:
        """Wait for the next frame, and return it as a line."""
        return str(self._next())

    def _next(self) -> FrameT:
        while not self._received:
            self._read_more()
        return self._received.pop(0)

    def receive_until(self, is_it: Callable[[FrameT], bool]) -> list[FrameT]:
        """Read until a matching frame was received; return all frames up to it, and those that came with it."""
        deadline, seen = time.monotonic() + TIMEOUT_S, 0
        while not any(map(is_it, self._received[seen:])):
            assert time.monotonic() < deadline, f"not received, only {list(map(str, self._received))[-5:]}"
            seen = len(self._received)
            self._read_more()
        return self._taken()

    def receive_now(self) -> list[str]:
        """Return the frames that have arrived, as lines."""
        while select([self.socket], [], [], 0)[0]:
            self._read_more()
        return [str(frame) for frame in self._taken()]

    def receive_all(self) -> list[FrameT]:
        """Read until the broker closes."""
        while not self.is_at_end:
            self._read()
        return self._taken()

    def close(self) -> None:
        """Close the socket without a handshake."""
        self.socket.close()

    def _read_more(self) -> None:
        self._read()
        if self.is_at_end:
            received = list(map(str, self._received))[-5:]
            raise ConnectionResetError(f"the broker closed the connection, after {received}")

    def _read(self) -> None:
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:  # killed, or closed with unread input
            data = b""
        self.is_at_end = not data
        self._received += self._reader.feed(data)

    def _taken(self) -> list[FrameT]:
        received, self._received = self._received, []
        return received
