"""An MQTT client on a socket, packet by packet, so that a test controls its state when the broker is killed."""

from typing import Any, Final

from tests.protocols.mqtt.frame_reader import FrameReader, ReceivedPacket
from tests.protocols.mqtt.packets import WRITERS, session_expiry
from tests.protocols.socket_harness import SocketHarness

#: The CONNECT property for a session that outlives the test.
FOR_AN_HOUR: Final = session_expiry(3600)


class SocketLink(SocketHarness[ReceivedPacket]):
    """One connection. Packets arrive as lines of ``FrameReader``; a missing answer fails the test.

    ``present`` is the session-present flag of the CONNACK.
    """

    def __init__(self, address: tuple[str, int], version: int = 5) -> None:
        super().__init__(address, FrameReader(version))
        self.present = False
        self.write = WRITERS[version]

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:  # Any: Writer.connect
        """Send CONNECT; return the CONNACK, without its properties, and the packets after it."""
        options["properties"] = options.get("properties", b"") + (b"" if expiry is None else session_expiry(expiry))
        self.send(self.write.connect(client_id, **options))
        return [self.receive_connack(), *map(str, self._taken())]

    def request(self, *packets: bytes) -> list[str]:
        """Send a SUBSCRIBE or UNSUBSCRIBE; return the packets up to its answer and with it."""
        self.send(*packets)
        answers = self.receive_until(lambda packet: packet.line.startswith(("SUBACK", "UNSUBACK")))
        return [str(packet) for packet in answers]

    def receive_connack(self) -> str:
        """Wait for the next packet, and return it without its properties."""
        connack = self._next().line
        self.present = connack == "CONNACK present"
        return connack

    def receive_answers(self, *, acknowledging: bool = False) -> list[str]:
        """Return all packets that the broker sends in answer to those sent so far.

        With ``acknowledging``, acknowledge publishes of QoS 1, so that more follow.
        """
        answers: list[str] = []
        has_more = True
        while has_more:
            new = self._receive_up_to_pingresp()
            has_more = acknowledging and bool(new)
            if acknowledging:
                self.send(*(self.write.puback(int(line.split()[2][1:])) for line in new))
            answers += new
        return answers

    def _receive_up_to_pingresp(self) -> list[str]:
        self.send(self.write.pingreq())
        received = self.receive_until(lambda packet: packet.line == "PINGRESP")
        return [str(packet) for packet in received if packet.line != "PINGRESP"]

    def receive_to_end(self) -> list[str]:
        """Return the packets that the broker sent before it was killed, and close the connection."""
        received = self.receive_all()
        self.close()
        return [str(packet) for packet in received]
