"""Harness for the STOMP state machine: a real broker on a store in memory, no sockets, no reactor, a fake clock.

``Gateway`` is the broker and its turns, ``Client`` a client connection. Each request of a client returns the frames
that it receives after all turns and commits, as values; the end of the connection is ``CLOSED``::

    gateway = Gateway()
    worker, shop = gateway.client(), gateway.client(version="1.0")
    assert worker.request("SUBSCRIBE", id="0", destination="/queue/orders", receipt="r") == [receipt("r")]
    shop.send("/queue/orders", b"one")
    assert worker.bodies() == [b"one"]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

from gateway.access import Access, Authenticator
from gateway.kernel.broker.connections import ChannelInfo, ConnectionInfo
from gateway.kernel.broker.directory import Directory
from gateway.kernel.journal.records import TopicPermissionRecord
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


@dataclass(frozen=True)
class Heard:
    """One received frame, its headers unescaped."""

    verb: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __getitem__(self, name: str) -> str:
        return self.headers[name]


CLOSED = Heard("closed")


def receipt(id: str) -> Heard:
    """Return the RECEIPT of a frame with this ``receipt`` header."""
    return Heard("RECEIPT", {"receipt-id": id})


def frame(verb: str, headers: Mapping[str, str] | None = None, body: bytes = b"", version: str = "1.2") -> bytes:
    """Return an encoded frame, written by hand from the specification."""
    lines = [
        verb,
        *(f"{_escaped(name, version)}:{_escaped(value, version)}" for name, value in (headers or {}).items()),
    ]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def frames_in(data: bytes, version: str) -> tuple[list[Heard], bytes]:
    """Return the frames in ``data``, decoded by hand from the specification, and the rest."""
    heard = []
    while data:
        if data[:1] == b"\n":
            data = data[1:]
            continue
        head, found, rest = data.partition(b"\n\n")
        if not found:
            break
        verb, *lines = head.decode().split("\n")
        escapes = "1.0" if verb == "CONNECTED" else version
        pairs = [line.split(":", 1) for line in lines]
        headers = {_unescaped(name, escapes): _unescaped(value, escapes) for name, value in reversed(pairs)}
        assert len(headers) == len(pairs), f"a header is repeated: {pairs}"
        length = int(headers["content-length"]) if "content-length" in headers else rest.index(b"\0")
        if len(rest) <= length:
            break
        assert rest[length] == 0
        heard.append(Heard(verb, dict(reversed(headers.items())), rest[:length]))
        data = rest[length + 1 :]
    return heard, data


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
        heard = client.connect(**headers)
        assert [frame.verb for frame in heard] == ["CONNECTED"], heard
        return client

    def crashed(self) -> "Gateway":
        """Return a broker that starts from the data committed when this one was killed."""
        return Gateway(store=self.store.reopened(), clock=self.fake_clock, **self._given)

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        return Access(self._authenticators or view.authenticators(directory), view.authorizers(directory))


class Client(PeerHarness[Connection, Heard]):
    """A STOMP client connection.

    ``welcome`` is the CONNECTED frame. With ``is_reading`` false it is congested: output for it stays in the outbox.
    """

    def __init__(self, gateway: Gateway, version: str = "1.2") -> None:
        super().__init__(gateway, 61613)
        self.gateway = gateway
        self.version = version
        self.welcome = Heard("nothing")
        self._unread = b""
        self.join(Connection(gateway.settings, self, self.io))

    # Called by tests

    def connect(self, **headers: str) -> list[Heard]:
        """Send CONNECT as guest, unless ``headers`` differ; ``_`` in their names is ``-``."""
        told = {"login": "guest", "passcode": "guest"}
        if self.version != "1.0":
            told |= {"accept-version": self.version, "host": "/"}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        heard = self.send_bytes(frame("CONNECT", told, version="1.0"))
        if heard and heard[0].verb == "CONNECTED":
            self.welcome = heard[0]
        return heard

    def request(
        self, verb: str, headers: Mapping[str, str] | None = None, body: bytes = b"", **more: str
    ) -> list[Heard]:
        """Send one frame and return the answers; ``more`` are headers whose names are valid in Python."""
        return self.send_bytes(frame(verb, {**(headers or {}), **more}, body, self.version))

    def send_bytes(self, data: bytes) -> list[Heard]:
        """Send these bytes and return the answers."""
        self.machine.receive(data)
        return self.hear()

    def send(self, destination: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> list[Heard]:
        return self.request("SEND", {"destination": destination, **(headers or {})}, body)

    def subscribe(self, destination: str, id: str = "0", **headers: str) -> list[Heard]:
        """Subscribe; ``_`` in the names of ``headers`` is ``-``."""
        told = {"id": id, "destination": destination}
        return self.request("SUBSCRIBE", told | {name.replace("_", "-"): value for name, value in headers.items()})

    def settle(self, verb: str, message: Heard, headers: Mapping[str, str] | None = None) -> list[Heard]:
        """Send ACK or NACK for a message, in the headers of the version."""
        told = {"id": message["ack"]} if self.version == "1.2" else {"message-id": message["message-id"]}
        if self.version == "1.1":
            told["subscription"] = message["subscription"]
        return self.request(verb, {**told, **(headers or {})})

    def hear(self) -> list[Heard]:
        """Return all received frames, after all turns and commits."""
        self.gateway.settle()
        assert not self._unread, self._unread
        return self._taken()

    def bodies(self) -> list[bytes]:
        """Return the bodies of the received messages."""
        heard = self.hear()
        assert all(frame.verb == "MESSAGE" for frame in heard), heard
        return [frame.body for frame in heard]

    def hear_now(self) -> list[Heard]:
        """Return the frames of this turn, without a commit."""
        self.gateway.end_turn()
        return self._taken()

    def read(self, data: bytes) -> list[Heard]:
        """Return the frames in these bytes."""
        heard, self._unread = frames_in(self._unread + data, self.version)
        return heard

    @property
    def closed(self) -> Heard:
        """The value that stands for the end of the connection."""
        return CLOSED

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


def _unescaped(text: str, version: str) -> str:
    meant = {escape: letter for letter, escape in _ESCAPES[version].items()}
    letters, result = iter(text), ""
    for letter in letters:
        result += meant[letter + next(letters)] if letter == "\\" and meant else letter
    return result
