"""A WebSocket client over a real socket, based on wsproto."""

import socket
import ssl

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Request


class WebClient:
    """A WebSocket client; the constructor performs the handshake."""

    def __init__(self, line: "socket.socket | ssl.SSLSocket", *subprotocols: str, origin: str = "") -> None:
        self.socket = line
        self.websocket = WSConnection(ConnectionType.CLIENT)
        self._early: list[Event] = []
        headers = [(b"Origin", origin.encode())] if origin else []
        self.send(Request(host="localhost", target="/ws", subprotocols=list(subprotocols), extra_headers=headers))
        accepted, *self._early = self.receive()
        assert isinstance(accepted, AcceptConnection), accepted

    def send(self, event: Event) -> None:
        self.socket.sendall(self.websocket.send(event))

    def send_bytes(self, data: bytes) -> None:
        self.send(BytesMessage(data))

    def receive(self) -> list[Event]:
        if self._early:
            early, self._early = self._early, []
            return early
        data = self.socket.recv(1 << 18)
        self.websocket.receive_data(data or None)
        return list(self.websocket.events())

    def receive_until(self, wanted: bytes) -> bytes:
        """Read until the received messages contain these bytes."""
        received = b""
        while wanted not in received:
            for event in self.receive():
                assert not isinstance(event, CloseConnection), f"closed with {event.code} after {received!r}"
                if isinstance(event, BytesMessage):
                    received += event.data
        return received

    def receive_to_close(self) -> tuple[bytes, int]:
        """Read until the server closes the connection; return the received bytes and the close code."""
        received = bytearray()
        while True:
            for event in self.receive():
                if isinstance(event, CloseConnection):
                    if self.websocket.state.name == "REMOTE_CLOSING":
                        self.send(event.response())
                    assert self.socket.recv(1) == b"", "data after the close"
                    return bytes(received), event.code
                if isinstance(event, BytesMessage):
                    received += event.data
