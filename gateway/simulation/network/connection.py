"""One connection between a client and a process: two pipes, and the transport that the server's side uses."""

from typing import Any, Final, Protocol

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.python.failure import Failure

from gateway.simulation.network.pipe import LinkQuality, Pipe
from gateway.simulation.world.reactor import SimulatedReactor

#: Bytes under way to a client above which the server's producer is paused, as by the buffer of a socket.
_BUFFER: Final = 65_536


class ClientEnd(Protocol):
    """The client's side of a connection."""

    def received(self, data: bytes) -> None:
        """Handle bytes of the server."""
        ...

    def closed(self) -> None:
        """Handle the end of the connection, whichever side ended it."""
        ...


class SimulatedConnection:
    """A connection. The client uses ``send``, ``close`` and ``pause``; the network uses ``cut``.

    ``was_cut`` is whether it broke, rather than being closed by one side.
    """

    def __init__(
        self, reactor: SimulatedReactor, link: LinkQuality, client: ClientEnd, port: int, client_port: int
    ) -> None:
        world = reactor.world
        self.reactor = reactor
        self.is_open = True
        self.was_cut = False
        self._client = client
        self._to_client = Pipe(world, link, client.received, self._server_closed)
        self._to_server = Pipe(world, link, self._server_received, self._client_closed)
        self.transport = SimulatedTransport(self, self._to_client, self._to_server, port, client_port)
        self._protocol: Any = None  # Any: Twisted's interfaces are not types

    # The client's side

    def send(self, data: bytes) -> None:
        """Send bytes to the server."""
        self._to_server.send(data)

    def pause(self, is_paused: bool) -> None:
        """Stop reading from the server, or resume it."""
        self._to_client.pause(is_paused)

    def close(self) -> None:
        """Close the connection from the client's side, after what it sent."""
        self._to_client.break_off()
        self._to_server.close()
        self._end_client()

    # The network

    def accept(self, factory: Any) -> None:
        """Let the server accept the connection."""
        if not self.reactor.is_alive:
            self.cut(0)
            return
        self._protocol = factory.buildProtocol(self.transport.getPeer())
        if self._protocol is None:
            self.cut(0)
            return
        self.reactor.run(lambda: self._protocol.makeConnection(self.transport))
        self._to_server.pause(self.transport.is_paused)

    def cut(self, noticed_after_s: float) -> None:
        """Break the connection: bytes under way are lost; the server notices it after some time."""
        self.was_cut = self.was_cut or self.is_open
        self._to_client.break_off()
        self._to_server.break_off()
        self._end_client()
        self.reactor.world.schedule(noticed_after_s, lambda: self.end_server(ConnectionLost()))

    def end_server(self, reason: Exception) -> None:
        """Tell the server's protocol that the connection is over; once only."""
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            self.reactor.run(lambda: protocol.connectionLost(Failure(reason)))  # type: ignore[no-untyped-call]  # Twisted's

    def _server_received(self, data: bytes) -> None:
        protocol = self._protocol
        if protocol is not None:
            self.reactor.run(protocol.dataReceived, data)

    def _client_closed(self) -> None:
        self._to_client.break_off()
        self.end_server(ConnectionDone())

    def _server_closed(self) -> None:
        self._to_server.break_off()
        self._end_client()
        self.end_server(ConnectionDone())

    def _end_client(self) -> None:
        if self.is_open:
            self.is_open = False
            self._client.closed()


class SimulatedTransport:
    """Twisted's transport of the server's side."""

    def __init__(
        self, connection: SimulatedConnection, output: Pipe, source: Pipe, port: int, client_port: int
    ) -> None:
        self.connected = True
        self.disconnecting = False
        self.is_paused = source.is_paused = True  # until the server has accepted the connection
        self._connection = connection
        self._output = output
        self._source = source
        self._host = IPv4Address("TCP", "127.0.0.1", port)
        self._peer = IPv4Address("TCP", "127.0.0.1", client_port)
        self._producer: Any = None
        self._is_producer_paused = False
        output.on_drained = self._drained
        self.is_paused = False

    def getHost(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        """Return the server's address."""
        return self._host

    def getPeer(self) -> IPv4Address:  # noqa: N802 - Twisted's name
        """Return the client's address."""
        return self._peer

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's name
        """Do nothing: each write is sent at once."""

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        self._output.send(data)
        if len(self._output) > _BUFFER and self._producer is not None and not self._is_producer_paused:
            self._is_producer_paused = True
            self._producer.pauseProducing()

    def writeSequence(self, pieces: list[bytes]) -> None:  # noqa: N802 - Twisted's name
        """Send several pieces."""
        self.write(b"".join(pieces))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Pause and resume this producer."""
        self._producer = producer

    def unregisterProducer(self) -> None:
        """Forget the producer."""
        self._producer = None

    def pauseProducing(self) -> None:
        """Stop reading from the client."""
        self.is_paused = True
        self._source.pause(True)

    def resumeProducing(self) -> None:
        """Resume reading from the client."""
        self.is_paused = False
        self._source.pause(False)

    def stopProducing(self) -> None:
        """Close the connection."""
        self.loseConnection()

    def loseConnection(self) -> None:
        """Close the connection after all output is sent."""
        self.disconnecting = True
        self._output.close()

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the output after all of it is sent."""
        self.loseConnection()

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        """Close the connection at once."""
        self.disconnecting = True
        self._connection.cut(0)

    def _drained(self) -> None:
        if self._is_producer_paused:
            self._is_producer_paused = False
            producer = self._producer
            if producer is not None:
                self._connection.reactor.run(producer.resumeProducing)
