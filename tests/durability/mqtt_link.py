"""An MQTT client on a socket, packet by packet, so that a test controls its state when the broker is killed."""

import socket
from select import select
from typing import Any, Final

from tests.protocols.mqtt.frame_reader import FrameReader, Heard
from tests.protocols.mqtt.packets import WRITERS, session_expiry

#: The timeout for an answer, in seconds.
_TIMEOUT_S: Final = 10.0

#: The CONNECT property for a session that outlives the test.
FOR_AN_HOUR: Final = session_expiry(3600)


class SocketLink:
    """One connection. Packets arrive as lines of ``FrameReader``; a missing answer fails the test.

    ``present`` is the session-present flag of the CONNACK.
    """

    def __init__(self, address: tuple[str, int], version: int = 5) -> None:
        self.present = False
        self.write = WRITERS[version]
        self._reader = FrameReader(version)
        self._heard: list[Heard] = []
        self._socket = socket.create_connection(address, _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:  # Any: Writer.connect
        """Send CONNECT; return the CONNACK, without its properties, and the packets after it."""
        options["properties"] = options.get("properties", b"") + (b"" if expiry is None else session_expiry(expiry))
        self.transmit(self.write.connect(client_id, **options))
        return [self.hear_welcome(), *self._taken()]

    def transmit(self, *packets: bytes) -> None:
        """Send packets without waiting."""
        self._socket.sendall(b"".join(packets))

    def request(self, packet: bytes) -> list[str]:
        """Send a SUBSCRIBE or UNSUBSCRIBE; return the packets up to its answer and with it."""
        self.transmit(packet)
        while not any(heard.line.startswith(("SUBACK", "UNSUBACK")) for heard in self._heard):
            self._read()
        return self._taken()

    def hear_welcome(self) -> str:
        """Wait for the next packet, and return it without its properties."""
        while not self._heard:
            self._read()
        welcome = self._heard.pop(0).line
        self.present = welcome == "CONNACK present"
        return welcome

    def hear(self) -> str:
        """Wait for the next packet."""
        while not self._heard:
            self._read()
        return str(self._heard.pop(0))

    def hear_up_to_now(self, *, acknowledging: bool = False) -> list[str]:
        """Return all packets that the broker sends in answer to those sent so far.

        With ``acknowledging``, acknowledge publishes of QoS 1, so that more follow.
        """
        answers: list[str] = []
        has_more = True
        while has_more:
            new = self._hear_up_to_ping()
            has_more = acknowledging and bool(new)
            if acknowledging:
                self.transmit(*(self.write.puback(int(line.split()[2][1:])) for line in new))
            answers += new
        return answers

    def _hear_up_to_ping(self) -> list[str]:
        self.transmit(self.write.pingreq())
        while "PINGRESP" not in [heard.line for heard in self._heard]:
            self._read()
        return [line for line in self._taken() if line != "PINGRESP"]

    def hear_now(self) -> list[str]:
        """Return the packets received since the last call."""
        while select([self._socket], [], [], 0)[0]:
            self._read()
        return self._taken()

    def hear_last(self) -> list[str]:
        """Return the packets that the broker sent before it was killed, and close the connection."""
        try:
            while data := self._socket.recv(65536):
                self._heard += self._reader.listen(data)
        except ConnectionResetError:  # killed with unread packets
            pass
        self.break_off()
        return self._taken()

    def break_off(self) -> None:
        """Close the connection without a DISCONNECT."""
        self._socket.close()

    def _read(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionResetError("the broker closed the connection")
        self._heard += self._reader.listen(data)

    def _taken(self) -> list[str]:
        heard, self._heard = self._heard, []
        return [str(packet) for packet in heard]
