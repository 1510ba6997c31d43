"""Harness for the conformance tables: frames are bytes, and received frames are formatted as lines.

``Client.send_frames`` sends frames in one write and returns the received frames after all turns and commits::

    client = Gateway().client("1.2")
    answers = client.send_frames(subscribe("/queue/q"), send("/queue/q", "receipt:r"))
    assert answers == ["MESSAGE s /queue/q 'hi'", "RECEIPT r"]
"""

from tests.conformance.stomp.frame_reader import FrameReader, Heard
from tests.conformance.stomp.frames import frame
from tests.protocols.stomp import dialogue


class Gateway(dialogue.Gateway):
    """A broker whose clients return received frames as lines."""

    def new_client(self, version: str = "1.2") -> "Client":
        """Return a client that has not sent anything yet."""
        return Client(self, version)

    def client(self, version: str = "1.2", **headers: str) -> "Client":
        """Return a client with an open connection."""
        client = super().client(version, **headers)
        assert isinstance(client, Client)
        return client

    def waiting(self, queue: str) -> int:
        """Return the number of ready messages in a queue."""
        return len(self.vhost.queue(queue))


class Client(dialogue.Client):
    """A client connection. ``messages`` are all received MESSAGE frames, oldest first."""

    def __init__(self, gateway: dialogue.Gateway, version: str) -> None:
        super().__init__(gateway, version)
        self.messages: list[Heard] = []
        self._ear = FrameReader(version)

    def send_frames(self, *frames: bytes) -> list[str]:
        """Send the frames in one write; return the received frames."""
        return [str(heard) for heard in self.exchange(*frames)]

    def exchange(self, *frames: bytes) -> list[Heard]:
        """Send the frames; return the received frames as values."""
        heard = [frame for frame in self.send_bytes(b"".join(frames)) if isinstance(frame, Heard)]
        self.messages += [frame for frame in heard if frame.verb == "MESSAGE"]
        return heard

    def settled(self, verb: str, number: int, *lines: str) -> bytes:
        """Return an ACK or NACK of a received message by its index, 0 for the first."""
        message = self.messages[number].headers
        if self.version == "1.2":
            return frame(verb, f"id:{message['ack']}", *lines)
        subscription = [f"subscription:{message['subscription']}"] if self.version == "1.1" else []
        return frame(verb, f"message-id:{message['message-id']}", *subscription, *lines)

    def ack(self, number: int, *lines: str) -> list[str]:
        return self.send_frames(self.settled("ACK", number, *lines))

    def nack(self, number: int, *lines: str) -> list[str]:
        return self.send_frames(self.settled("NACK", number, *lines))

    def read(self, data: bytes) -> list[dialogue.Heard]:
        """Return the frames in these bytes."""
        return [*self._ear.listen(data)]

    @property
    def closed(self) -> Heard:
        """The value that stands for the end of the connection."""
        return Heard("closed")
