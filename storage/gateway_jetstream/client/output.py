"""The output of a connection: one write for all of a turn, or one at once for what another process waits for.

A write to Twisted's transport costs two ``epoll_ctl`` calls and twenty calls of Python functions, a large part of what
a lone message needs. So a plain socket is written to directly. What it does not take goes through the transport.
"""

from collections.abc import Callable
from typing import Any, Final

from gateway_jetstream.client.conversation import NatsConversation
from gateway_jetstream.errors import TooMuch

#: No descriptor: everything goes through the transport.
_NO_DESCRIPTOR: Final = -1


class NatsOutput:
    """Sends what a conversation has to say. Owns it until the transport or the socket takes it.

    It is the producer of the transport: a push producer until ``write_directly``, which stops while the transport's
    buffer is full; a pull producer after that, which goes on once the transport has sent what the socket did not take.

    :param most_bytes: the limit of what may wait.
    :param write: writes to a non-blocking descriptor as ``os.write`` does.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        server: str,
        conversation: NatsConversation,
        most_bytes: int,
        write: Callable[[int, bytes], int],
    ) -> None:
        self._reactor = reactor
        self._server = server
        self._conversation = conversation
        self._most_bytes = most_bytes
        self._write = write
        self._transport: Any = None  # Any: TCP and TLS transports share no type
        self._descriptor = _NO_DESCRIPTOR
        self._flush_call: Any = None
        self._waiting = 0
        self._is_held = False

    def begin(self, transport: Any) -> None:
        """Write to a transport from now on."""
        self._transport = transport
        transport.registerProducer(self, True)

    def write_directly(self) -> None:
        """Write to the socket from now on, if the transport has one. It has sent everything, and there is no TLS."""
        if getattr(self._transport, "socket", None) is not None:
            self._transport.unregisterProducer()
            self._transport.registerProducer(self, False)
            self._descriptor = self._transport.fileno()

    def send(self, data: bytes, at_once: bool) -> None:
        """Send bytes at the end of this turn, or ``at_once``. :raises TooMuch: if too many wait already."""
        if self._waiting + len(data) > self._most_bytes:
            raise TooMuch(f"more than {self._most_bytes} bytes wait for the network", server=self._server)
        self._waiting += len(data)
        self._conversation.send(data)
        if at_once:
            self._flush_now()
        else:
            self.flush_soon()

    def flush_soon(self) -> None:
        """Send what waits at the end of this turn."""
        if self._flush_call is None and self._conversation.has_outgoing and self._can_write:
            self._flush_call = self._reactor.callLater(0, self._flush)

    @property
    def _can_write(self) -> bool:
        return not self._is_held and self._transport is not None

    def _flush_now(self) -> None:
        """Send what waits, without waiting for a poll, in which the thread of the store would take over for a while."""
        if self._flush_call is not None:
            self._flush_call.cancel()
        self._flush()
        if self._descriptor == _NO_DESCRIPTOR and self._can_write:
            do_write = getattr(self._transport, "doWrite", None)  # a socket has it, TLS does not
            if do_write is not None:
                do_write()

    def _flush(self) -> None:
        self._flush_call = None
        if not self._can_write:
            return
        data = self._conversation.outgoing()
        self._waiting = 0
        if not data:
            return
        if self._descriptor == _NO_DESCRIPTOR:
            self._transport.write(data)
        else:
            self._write_to_socket(data)

    def _write_to_socket(self, data: bytes) -> None:
        try:
            sent = self._write(self._descriptor, data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self._transport.abortConnection()  # the server is gone, and no read may notice it
            return
        if sent < len(data):
            self._is_held = True  # until the transport has sent the rest
            self._transport.write(data[sent:])

    def finish(self) -> None:
        """Hand everything that waits to the transport, to be sent before it closes."""
        self._is_held = False
        self._descriptor = _NO_DESCRIPTOR  # the transport may have to send something before it
        self._flush()
        if self._transport is not None:
            self._transport.unregisterProducer()

    def end(self) -> None:
        """Send nothing more; the descriptor may be used again by another connection."""
        self._descriptor = _NO_DESCRIPTOR
        self._transport = None
        if self._flush_call is not None:
            self._flush_call.cancel()
            self._flush_call = None

    # Called by the transport

    def pauseProducing(self) -> None:
        """Keep the output: the transport's buffer is full."""
        self._is_held = True

    def resumeProducing(self) -> None:
        """Send what was kept: the transport's buffer is empty."""
        self._is_held = False
        self.flush_soon()

    def stopProducing(self) -> None:
        """Keep the output, which is dropped: the connection ends."""
        self._is_held = True
