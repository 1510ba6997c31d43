"""Harness for the STOMP state machine: a real broker on a store in memory, no sockets, no reactor, a fake clock.

``Gateway`` is the broker and its turns, ``Client`` a client connection. Each request of a client returns the frames
that it receives after all turns and commits, as values; the end of the connection is ``CLOSED``::

    gateway = Gateway()
    worker, shop = gateway.client(), gateway.client(version="1.0")
    assert worker.command("SUBSCRIBE", id="0", destination="/queue/orders", receipt="r") == [receipt("r")]
    shop.publish("/queue/orders", b"one")
    assert worker.bodies() == [b"one"]
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

from gateway.access import Access, Authenticator
from gateway.kernel.broker.connections import ChannelInfo, ConnectionInfo
from gateway.kernel.broker.directory import Directory
from gateway.kernel.journal.records.access import TopicPermissionRecord
from gateway.kernel.messages.message import Header, HeaderFormat, Message, Properties
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.plugins.registry import PluginView
from gateway.testing import FakeClock
from gateway_memory import MemoryStore
from gateway_stomp.connection import Connection
from gateway_stomp.header import STOMP
from gateway_stomp.listener_context import StompContext
from tests.protocols.broker_harness import ALL, BrokerHarness
from tests.protocols.peer_harness import PeerHarness
from tests.protocols.stomp.frame_reader import CLOSED, FrameReader, ReceivedFrame


def receipt(id: str) -> ReceivedFrame:
    """Return the RECEIPT of a frame with this ``receipt`` header."""
    return ReceivedFrame("RECEIPT", {"receipt-id": id})


def frame(verb: str, headers: Mapping[str, str] | None = None, body: bytes = b"", version: str = "1.2") -> bytes:
    """Return an encoded frame, written by hand from the specification."""
    lines = [
        verb,
        *(f"{_escaped(name, version)}:{_escaped(value, version)}" for name, value in (headers or {}).items()),
    ]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


class Gateway(BrokerHarness):
    """A broker for STOMP; ``settings`` are those of ``StompContext``.

    ``authenticators`` replace those of the plugins.
    """

    formats: ClassVar[tuple[HeaderFormat, ...]] = (STOMP, NATIVE)

    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        clock: FakeClock | None = None,
        plugins: tuple[str, ...] = (),
        authenticators: Sequence[Authenticator] = (),
        **settings: Any,  # Any: each setting of its own type
    ) -> None:
        self._given = settings
        self._authenticators = authenticators
        super().__init__(store, clock or FakeClock(), plugins)
        tokens = count(1)
        login = self._access("/")
        self.settings = StompContext(self.broker, self._access, login, lambda: f"token-{next(tokens)}", **settings)
        self.settle()

    def add_user(self, name: str, password: str, may: tuple[str, str, str] = ALL) -> None:
        """Add a user; ``may`` are the patterns for configure, write and read."""
        self.put_user(name, password, may=may)

    def restrict_topics(self, user: str, write: str, read: str) -> None:
        """Restrict a user to topics that match these patterns."""
        self.broker.directory.put_topic_permission(TopicPermissionRecord("/", user, "amq.topic", write, read))

    def publish(self, exchange: str, routing_key: str, body: bytes = b"", properties: Properties | None = None) -> None:
        """Publish as a client of another protocol."""
        header: Header = native_header(properties or Properties())
        message = Message(exchange, routing_key, header, body)
        self.vhost.publish(self.vhost.exchange(exchange), message)

    def new_client(self, version: str = "1.2") -> "Client":
        """Return a client that has not sent anything yet."""
        return Client(self, version)

    def client(self, version: str = "1.2", **headers: str) -> "Client":
        """Return a client with an open connection; ``headers`` are those of its CONNECT."""
        client = self.new_client(version)
        received = client.connect(**headers)
        assert [frame.verb for frame in received] == ["CONNECTED"], received
        return client

    def crashed(self) -> "Gateway":
        """Return a broker that starts from the data committed when this one was killed."""
        return Gateway(store=self.store.reopened(), clock=self.fake_clock, **self._given)

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        return Access(self._authenticators or view.authenticators(directory), view.authorizers(directory))


class Client(PeerHarness[Connection, ReceivedFrame]):
    """A STOMP client connection.

    ``welcome`` is the CONNECTED frame, ``messages`` are all received MESSAGE frames, oldest first.
    """

    def __init__(self, gateway: Gateway, version: str = "1.2") -> None:
        super().__init__(gateway, 61613, FrameReader(version), CLOSED)
        self.gateway = gateway
        self.version = version
        self.welcome = ReceivedFrame("nothing")
        self.messages: list[ReceivedFrame] = []
        self.join(Connection(gateway.settings, self, self.io))

    # Called by tests

    def connect(self, **headers: str) -> list[ReceivedFrame]:
        """Send CONNECT as guest, unless ``headers`` differ; ``_`` in their names is ``-``."""
        sent = {"login": "guest", "passcode": "guest"}
        if self.version != "1.0":
            sent |= {"accept-version": self.version, "host": "/"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        received = self.request_frames(frame("CONNECT", sent, version="1.0"))
        if received and received[0].verb == "CONNECTED":
            self.welcome = received[0]
        return received

    def command(
        self, verb: str, headers: Mapping[str, str] | None = None, body: bytes = b"", **more: str
    ) -> list[ReceivedFrame]:
        """Send one frame and return the answers; ``more`` are headers whose names are valid in Python."""
        return self.request_frames(frame(verb, {**(headers or {}), **more}, body, self.version))

    def publish(
        self, destination: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> list[ReceivedFrame]:
        return self.command("SEND", {"destination": destination, **(headers or {})}, body)

    def subscribe(self, destination: str, id: str = "0", **headers: str) -> list[ReceivedFrame]:
        """Subscribe; ``_`` in the names of ``headers`` is ``-``."""
        sent = {"id": id, "destination": destination}
        return self.command("SUBSCRIBE", sent | {name.replace("_", "-"): value for name, value in headers.items()})

    def settle(
        self, verb: str, message: ReceivedFrame, headers: Mapping[str, str] | None = None
    ) -> list[ReceivedFrame]:
        """Send ACK or NACK for a message, in the headers of the version."""
        return self.command(verb, self._headers_of(message) | dict(headers or {}))

    def acknowledgement(self, verb: str, number: int, *lines: str) -> bytes:
        """Return an ACK or NACK, in the headers of the version, of the message with this index, 0 for the first."""
        headers = self._headers_of(self.messages[number]) | dict(line.split(":", 1) for line in lines)
        return frame(verb, headers, version=self.version)

    def ack(self, number: int, *lines: str) -> list[str]:
        return self.request(self.acknowledgement("ACK", number, *lines))

    def nack(self, number: int, *lines: str) -> list[str]:
        return self.request(self.acknowledgement("NACK", number, *lines))

    def receive_frames(self) -> list[ReceivedFrame]:
        """Return all received frames, after all turns and commits."""
        received = super().receive_frames()
        self.messages += [frame for frame in received if frame.verb == "MESSAGE"]
        return received

    def bodies(self) -> list[bytes]:
        """Return the bodies of the received messages."""
        received = self.receive_frames()
        assert all(frame.verb == "MESSAGE" for frame in received), received
        return [frame.body for frame in received]

    def _headers_of(self, message: ReceivedFrame) -> dict[str, str]:
        """Return the headers that identify a message in ACK and NACK."""
        if self.version == "1.2":
            return {"id": message["ack"]}
        subscription = {"subscription": message["subscription"]} if self.version == "1.1" else {}
        return {"message-id": message["message-id"], **subscription}

    # Called by the broker

    def info(self) -> ConnectionInfo:
        address = ("127.0.0.1", 61613, "127.0.0.1", 50000)
        return ConnectionInfo("STOMP", "running", *address, False, 0, "", {}, 0, 0, 60, (0, 0), (0, 0))

    def channels(self) -> list[ChannelInfo]:
        return self.machine.channel_infos()

    def tick(self) -> None:
        self.machine.check_consumer_timeouts()


_ESCAPES = {
    "1.0": {},
    "1.1": {"\\": "\\\\", ":": "\\c", "\n": "\\n"},
    "1.2": {"\\": "\\\\", ":": "\\c", "\n": "\\n", "\r": "\\r"},
}


def _escaped(text: str, version: str) -> str:
    return "".join(_ESCAPES[version].get(letter, letter) for letter in text)
