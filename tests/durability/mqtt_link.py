"""A client of MQTT on a socket, packet by packet, so that a test knows in which state it is when its broker dies."""

import socket
from select import select
from typing import Any, Final

from tests.protocols.mqtt.frame_reader import FrameReader, Heard
from tests.protocols.mqtt.packets import WRITERS, session_expiry

#: Longer than any answer takes.
_PATIENCE_S: Final = 10.0

#: The property of a CONNECT whose session outlives the tests.
FOR_AN_HOUR: Final = session_expiry(3600)


class SocketLink:
    """One connection. Packets arrive as the lines of ``FrameReader``; a missing answer fails the test.

    ``present`` says that there was a session for it.
    """

    def __init__(self, address: tuple[str, int], version: int = 5) -> None:
        self.present = False
        self.write = WRITERS[version]
        self._ear = FrameReader(version)
        self._heard: list[Heard] = []
        self._socket = socket.create_connection(address, _PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:  # Any: Writer.connect
        """Say CONNECT; return the CONNACK, without its properties, and what came right behind it."""
        options["properties"] = options.get("properties", b"") + (b"" if expiry is None else session_expiry(expiry))
        self.tell(self.write.connect(client_id, **options))
        return [self.hear_welcome(), *self._taken()]

    def tell(self, *packets: bytes) -> None:
        """Send packets and wait for nothing."""
        self._socket.sendall(b"".join(packets))

    def ask(self, packet: bytes) -> list[str]:
        """Send a SUBSCRIBE or UNSUBSCRIBE; return what is heard up to its answer, and what came with that."""
        self.tell(packet)
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
        """Return all that the broker has to say to what it was told so far.

        Publishes of QoS 1 may be acknowledged, so that more follow.
        """
        said: list[str] = []
        has_more = True
        while has_more:
            new = self._hear_up_to_ping()
            has_more = acknowledging and bool(new)
            if acknowledging:
                self.tell(*(self.write.puback(int(line.split()[2][1:])) for line in new))
            said += new
        return said

    def _hear_up_to_ping(self) -> list[str]:
        self.tell(self.write.pingreq())
        while "PINGRESP" not in [heard.line for heard in self._heard]:
            self._read()
        return [line for line in self._taken() if line != "PINGRESP"]

    def hear_now(self) -> list[str]:
        """Return what came since the last look."""
        while select([self._socket], [], [], 0)[0]:
            self._read()
        return self._taken()

    def hear_last(self) -> list[str]:
        """Return what the broker still said before it died, and let go of the connection."""
        try:
            while data := self._socket.recv(65536):
                self._heard += self._ear.listen(data)
        except ConnectionResetError:  # it died with packets unread
            pass
        self.break_off()
        return self._taken()

    def break_off(self) -> None:
        """Be gone without a word."""
        self._socket.close()

    def _read(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionResetError("the broker hung up")
        self._heard += self._ear.listen(data)

    def _taken(self) -> list[str]:
        heard, self._heard = self._heard, []
        return [str(packet) for packet in heard]
