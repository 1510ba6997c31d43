"""The transport of an accepted connection that has no layer, such as TLS, between the socket and its protocol.

It has what a ``PeerProtocol`` and its ``SocketWriter`` use of Twisted's transport, without the objects and calls of
that: it keeps a descriptor instead of a socket, makes no text before one is shown, and is polled without Twisted's
tables (docs/adr/0036-what-a-login-costs.md). Connections with layers have ``ServerTransport``.
"""

import os
import socket
import struct
from select import EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLOUT
from typing import Any, Final, Protocol

from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.python.failure import Failure

from gateway.net.login_poller import LoginPoller
from gateway.net.syscalls import close_output, send, with_socket

_send: Final = send

#: Bytes that may wait before the producer is paused, and the most that one call sends; both as in Twisted.
_FULL: Final = 64 * 1024
_MOST_SENT: Final = 128 * 1024

#: Pieces that one call sends.
_MOST_PIECES: Final = 64

_NOTHING: Final = 0
_READABLE: Final = int(EPOLLIN)
_WRITABLE: Final = int(EPOLLOUT)
_BROKEN: Final = int(EPOLLHUP | EPOLLERR)

#: The reason of a connection that this side drops.
ABORTED: Final = ConnectionAborted()


class _End(Failure):
    """The failure that protocols get, with the text that Twisted gives it, made once."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__(reason)  # type: ignore[no-untyped-call]  # Twisted's
        self._text = super().getErrorMessage()

    def getErrorMessage(self) -> str:  # noqa: N802 - Twisted's name
        """Return the text."""
        return self._text


#: One for each reason.
_FAILURES: Final[dict[type[BaseException], Failure]] = {
    type(reason): _End(reason) for reason in (ConnectionDone(), ConnectionLost(), ABORTED)
}

#: The value of ``SO_LINGER`` with which a close resets the connection and drops what waits to be sent.
_RESET: Final = struct.pack("ii", 1, 0)

#: The descriptor of a closed transport.
_CLOSED: Final = -1


class SocketReader(Protocol):
    """The part of a ``ConnectionIO`` that reads the socket."""

    def listen(self, descriptor: int) -> None:
        """Read from this descriptor from now on."""
        ...

    def read(self) -> Any:
        """Read once. Return Twisted's reason when the connection is over, otherwise ``None``."""
        ...


class Producer(Protocol):
    """The part of a ``SocketWriter`` that learns how full the buffer is."""

    def pauseProducing(self) -> None:
        """Take notice of a full buffer."""
        ...

    def resumeProducing(self) -> None:
        """Take notice of an empty buffer."""
        ...


class Polling(Protocol):
    """The part of the loop that a transport uses."""

    login_poller: LoginPoller

    def serve_plain(self, transport: "PlainTransport", io: Any, descriptor: int) -> None:
        """Serve the events of this descriptor by a transport and its ``ConnectionIO``."""
        ...

    def forget_plain(self, descriptor: int) -> None:
        """Serve them no more."""
        ...

    def ended(self, transport: "PlainTransport", why: Any) -> None:
        """Notify the protocol of the end later, as one of few in a turn."""
        ...


class PlainTransport:
    """An accepted connection, polled at low priority until it has logged in.

    ``disconnecting``: it closes when its buffer is empty.
    ``disconnected``: it is closed.
    """

    __slots__ = (
        "_addresses",
        "_descriptor",
        "_events",
        "_has_ended",
        "_is_output_closed",
        "_is_output_closing",
        "_is_paused",
        "_offset",
        "_polling",
        "_producer",
        "_reader",
        "_unsent",
        "_unsent_size",
        "disconnected",
        "disconnecting",
        "protocol",
    )

    def __init__(
        self, descriptor: int, protocol: Any, peer: tuple[str, int], host: tuple[str, int], polling: Polling
    ) -> None:
        """Own a non-blocking socket between two addresses, host and port. It is not read before ``read_by``."""
        self.protocol = protocol
        self._addresses: tuple[tuple[str, int], tuple[str, int]] | None = (peer, host)
        self.disconnecting = False
        self.disconnected = False
        self._descriptor = descriptor
        self._polling = polling
        self._reader: SocketReader | None = None
        self._producer: Producer | None = None
        self._unsent: list[bytes] | None = None
        self._unsent_size = 0
        self._offset = 0  # in the first piece
        self._events = _NOTHING
        self._has_ended = False
        self._is_paused = False  # the producer is
        self._is_output_closing = False
        self._is_output_closed = False

    def take_addresses(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return the addresses of the peer and of this side, once: the protocol keeps what it needs of them."""
        addresses, self._addresses = self._addresses, None
        assert addresses is not None
        return addresses

    def fileno(self) -> int:
        """Return the descriptor; -1 after the close."""
        return self._descriptor

    @property
    def socket(self) -> "PlainTransport":
        """This object, which has what others use of the socket: ``fileno`` and ``setsockopt``."""
        return self

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        """Set an option of the socket."""
        with_socket(self._descriptor, lambda it: it.setsockopt(level, option, value))

    def promote(self) -> None:
        """Poll it at normal priority from now on: its client has logged in."""
        self._polling.login_poller.promote(self._descriptor)

    # In

    def read_by(self, io: SocketReader) -> None:
        """Let a ``ConnectionIO`` read the socket from now on."""
        io.listen(self._descriptor)
        self._reader = io
        self._polling.serve_plain(self, io, self._descriptor)
        self._watch(_READABLE)

    def pauseProducing(self) -> None:
        """Stop reading."""
        self._watch(self._events & ~_READABLE)

    def resumeProducing(self) -> None:
        """Resume reading."""
        if not self.disconnected and not self.disconnecting:
            self._watch(self._events | _READABLE)

    def serve(self, event: int) -> Any:
        """Serve an event that is not readability alone. Return Twisted's reason when the connection is over."""
        why = None
        if event & _BROKEN and not event & _READABLE:
            return CONNECTION_DONE if self._events & _READABLE else CONNECTION_LOST
        if event & _READABLE and self._reader is not None:
            why = self._reader.read()
        if why is None and event & _WRITABLE and not self.disconnected:
            why = self._send()
        return why

    # Out

    @property
    def has_unsent(self) -> bool:
        """Whether bytes wait in the buffer."""
        return self._unsent is not None

    def write(self, data: bytes) -> None:
        """Send bytes after those that wait; pause the producer when much waits."""
        if data:
            self.write_all([data])

    def write_all(self, pieces: list[bytes]) -> None:
        """Send pieces as ``write`` does. They are not joined, so that large messages are not copied."""
        if self._has_ended or self.disconnected or self._is_output_closed:
            return
        if self._unsent is None:
            self._unsent = []
        self._unsent += pieces
        self._unsent_size += sum(map(len, pieces))
        if self._producer is not None and self._unsent_size > _FULL:
            self._is_paused = True
            self._producer.pauseProducing()
        self._watch(self._events | _WRITABLE)

    def _send(self) -> Any:
        """Send what the socket takes, up to a limit, and do what the empty buffer allows.

        Return the reason when the connection is over.
        """
        left = _MOST_SENT
        while self._unsent is not None:
            if left <= 0:
                return None
            pieces, size = self._next(left)
            try:
                sent = _send(self._descriptor, pieces[0]) if len(pieces) == 1 else os.writev(self._descriptor, pieces)
            except (BlockingIOError, InterruptedError):
                return None
            except OSError:
                return CONNECTION_LOST
            self._sent(sent)
            left -= sent
            if sent < size:
                return None
        self._watch(self._events & ~_WRITABLE)
        if self._producer is not None and self._is_paused:
            self._is_paused = False
            self._producer.resumeProducing()
        elif self.disconnecting:
            return CONNECTION_DONE
        elif self._is_output_closing:
            self._close_output()
        return None

    def _next(self, most: int) -> tuple[list[bytes], int]:
        """Return the pieces to send next, and their size: at least one, or a part of it, and ``most`` bytes at most."""
        unsent = self._unsent
        assert unsent is not None
        first = unsent[0]
        if self._offset or len(first) > most:
            first = first[self._offset : self._offset + most]
        pieces, size = [first], len(first)
        for piece in unsent[1:_MOST_PIECES]:
            size += len(piece)
            if size > most:
                return pieces, size - len(piece)
            pieces.append(piece)
        return pieces, size

    def _sent(self, size: int) -> None:
        """Drop the first bytes of the buffer."""
        unsent = self._unsent
        assert unsent is not None
        self._unsent_size -= size
        size += self._offset
        whole = 0
        while whole < len(unsent) and size >= len(unsent[whole]):
            size -= len(unsent[whole])
            whole += 1
        self._offset = size
        del unsent[:whole]
        if not unsent:
            self._unsent = None

    def registerProducer(self, producer: Producer, streaming: bool) -> None:
        """Register the producer that is paused while much waits; it must be a push producer."""
        self._producer = producer

    def unregisterProducer(self) -> None:
        """Let nothing be paused."""
        self._producer = None
        if self.disconnecting and not self.disconnected:
            self._watch(self._events | _WRITABLE)

    # The end

    def loseConnection(self) -> None:
        """Close the connection after all output was sent, without reading any more."""
        if self.disconnected or self.disconnecting:
            return
        self.disconnecting = True
        if self._is_output_closed:
            self.end(CONNECTION_DONE)
        else:
            self._watch(_WRITABLE)

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the output side after all output was sent: now if nothing waits. The peer is still read from."""
        self._is_output_closing = True
        if self._unsent is None:
            self._close_output()

    def _close_output(self) -> None:
        if not self._is_output_closed and not self.disconnected:
            self._is_output_closed = True
            try:  # noqa: SIM105 - ``suppress`` takes 1 µs of each connection
                close_output(self._descriptor)
            except OSError:
                pass  # the peer is gone, which a read reports

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the connection soon, and drop what waits to be sent."""
        self.end(ABORTED)

    def end(self, why: Any) -> None:
        """Serve no more events; ``lost`` follows in this turn or a later one. The first reason counts."""
        if self._has_ended or self.disconnected:
            return
        self._watch(_NOTHING)
        self._has_ended = True
        self._polling.forget_plain(self._descriptor)
        self._polling.ended(self, why)

    def lost(self, why: Any) -> None:
        """Close the socket and notify the protocol. Further calls have no effect."""
        if self.disconnected:
            return
        self.disconnected = True
        self._watch(_NOTHING)
        descriptor, self._descriptor = self._descriptor, _CLOSED
        self._polling.forget_plain(descriptor)
        self._reader = None
        self._producer = None
        self._unsent = None
        try:
            if why is ABORTED:
                with_socket(descriptor, lambda it: it.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET))
            os.close(descriptor)
        except OSError:
            pass  # the system has released the descriptor in any case
        protocol, self.protocol = self.protocol, None
        protocol.connectionLost(_FAILURES[type(why)])

    def _watch(self, events: int) -> None:
        """Wait for these events from now on."""
        before = self._events
        if events == before or self._has_ended:
            return
        self._events = events
        poller = self._polling.login_poller
        if events == _NOTHING:
            poller.unregister(self._descriptor)
        elif before == _NOTHING:
            poller.register(self._descriptor, events)
        else:
            poller.modify(self._descriptor, events)
