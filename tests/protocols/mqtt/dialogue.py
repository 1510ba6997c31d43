"""A test harness for the MQTT connection: a real broker with the memory store, no sockets, no reactor, a fake clock.

``Gateway`` is the broker with its event loop turns, ``Client`` a connected client. Each method that sends packets
returns what the client receives after all effects are durable::

    gateway = Gateway()
    sensor, app = gateway.client("sensor"), gateway.client("app", version=4)
    assert app.subscribe("t/+", 1) == ["SUBACK #1 1"]
    assert sensor.publish("t/1", qos=1, id=7) == ["PUBACK #7"]
    assert app.receive() == ["PUBLISH q1 #1 t/1 'hi'"]
"""

from collections.abc import Mapping
from itertools import count
from typing import Any, ClassVar, Self

from gateway.access import Access, AuthenticationMethod
from gateway.kernel.broker.connections import ConnectionInfo
from gateway.kernel.broker.directory import Directory
from gateway.kernel.messages.message import HeaderFormat
from gateway.kernel.messages.native_header import NATIVE
from gateway.plugins.registry import PluginView
from gateway.testing import FakeClock
from gateway_memory import MemoryStore
from gateway_mqtt.connection import Connection
from gateway_mqtt.handshake.login import LoginRules
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.translation.header import MQTT
from tests.protocols.broker_harness import ALL, BrokerHarness
from tests.protocols.mqtt.frame_reader import CLOSED, FrameReader, ReceivedPacket
from tests.protocols.mqtt.packets import WRITERS, session_expiry
from tests.protocols.peer_harness import PeerHarness


class Gateway(BrokerHarness):
    """A broker with MQTT. ``methods`` are authentication methods by name, besides those of plugins; ``limits`` are
    settings of ``MqttContext``.
    """

    formats: ClassVar[tuple[HeaderFormat, ...]] = (MQTT, NATIVE)

    def __init__(
        self,
        *,
        store: MemoryStore | None = None,
        clock: FakeClock | None = None,
        methods: Mapping[str, AuthenticationMethod] | None = None,
        **limits: Any,  # Any: each setting of its own type
    ) -> None:
        self._methods = dict(methods or {})
        self._limits = limits
        super().__init__(store, clock or FakeClock())
        tokens = count(1)
        login = LoginRules(self.broker, self._access, refusal_delay_s=0)
        self.settings = MqttContext(
            self.broker, login, self._access, lambda: f"token-{next(tokens)}", **{"prefetch": 1000, **limits}
        )
        self.settle()

    def add_user(self, name: str, password: str, may: tuple[str, str, str] = ALL) -> None:
        """Add a user; ``may`` are the patterns for configure, write and read."""
        self.put_user(name, password, may=may)

    def new_client(self, version: int = 5) -> "Client":
        """Return a client that has not sent anything yet."""
        return Client(self, version)

    def client(self, client_id: str, version: int = 5, **options: Any) -> "Client":  # Any: those of Writer.connect
        """Return a client with an open connection; see ``Client.connect``."""
        client = self.new_client(version)
        received = client.connect(client_id, **options)
        assert received
        assert received[0] in ("CONNACK", "CONNACK present"), received
        client.backlog = received[1:]
        return client

    def crashed(self) -> Self:
        """Return the broker after a crash and a restart: with the data that was committed."""
        return type(self)(store=self.store.reopened(), clock=self.fake_clock, methods=self._methods, **self._limits)

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        return Access(view.authenticators(directory), view.authorizers(directory), methods=self._methods)


class Client(PeerHarness[Connection, ReceivedPacket]):
    """The client side of a connection.

    ``welcome`` is the CONNACK, ``backlog`` the packets right after it if ``Gateway.client`` created the client. With
    ``is_reading`` false the connection is congested: the server's packets stay in the outbox.
    """

    def __init__(self, gateway: Gateway, version: int = 5) -> None:
        super().__init__(gateway, 1883, FrameReader(version), CLOSED)
        self.gateway = gateway
        self.write = WRITERS[version]
        self.welcome = ReceivedPacket("nothing")
        self.backlog: list[str] = []
        self.join(Connection(gateway.settings, self, self.io))

    # Actions of a test

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:  # Any: Writer.connect
        """Send CONNECT; return the answer, with a successful CONNACK shown without its properties.

        ``expiry`` is the Session Expiry Interval.
        """
        options["properties"] = options.get("properties", b"") + (b"" if expiry is None else session_expiry(expiry))
        received = self.request_frames(self.write.connect(client_id, **options))
        if received and received[0].line in ("CONNACK", "CONNACK present"):
            self.welcome = received[0]
            return [received[0].line, *map(str, received[1:])]
        return [str(packet) for packet in received]

    def subscribe(self, filter: str, options: int = 0, *, id: int = 1, properties: bytes = b"") -> list[str]:
        return self.request(self.write.subscribe((filter, options), id=id, properties=properties))

    def unsubscribe(self, *filters: str, id: int = 2) -> list[str]:
        return self.request(self.write.unsubscribe(*filters, id=id))

    def publish(self, topic: str, payload: bytes = b"hi", **options: Any) -> list[str]:  # Any: those of Writer.publish
        return self.request(self.write.publish(topic, payload, **options))

    def puback(self, id: int, reason: int | None = None) -> list[str]:
        return self.request(self.write.puback(id, reason))

    def pubrec(self, id: int, reason: int | None = None) -> list[str]:
        return self.request(self.write.pubrec(id, reason))

    def pubrel(self, id: int, reason: int | None = None) -> list[str]:
        return self.request(self.write.pubrel(id, reason))

    def pubcomp(self, id: int, reason: int | None = None) -> list[str]:
        return self.request(self.write.pubcomp(id, reason))

    def disconnect(self, reason: int | None = None, properties: bytes | None = None) -> list[str]:
        """Send DISCONNECT, then close."""
        received = self.request(self.write.disconnect(reason, properties))
        self.lose()
        return received

    def info(self) -> ConnectionInfo:
        address = ("127.0.0.1", 1883, "127.0.0.1", 50000)
        return ConnectionInfo("MQTT", "running", *address, False, 0, "", {}, 0, 0, 60, (0, 0), (0, 0))

    def tick(self) -> None:
        self.machine.count_down()
