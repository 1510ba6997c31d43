"""Clients of MQTT that must not lose their connection: see ``StayingClients``. Here the queue is a topic."""

from threading import Event
from typing import Any, Literal

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.clusters.gateway_cluster import ClusterNode
from tests.clusters.staying_clients import HEARTBEAT_S, StayingClients
from tests.paho_loop import stop_loop
from tests.waiting import wait_until

#: The time for a connection, a subscription and an acknowledgement across a takeover, in seconds.
_ANSWER_S = 60.0

_PAUSE_S = 0.005

#: The longest life of a subscriber, in seconds.
LONGEST_S = 600.0


class PahoClients(StayingClients):
    """A publisher and a subscriber of paho that do not connect again. Their sessions outlive the connection."""

    listener = "mqtt"
    transport: Literal["tcp", "websockets"] = "tcp"

    def _secure(self, client: Client) -> None:
        """Set up TLS."""

    def __init__(
        self, node: ClusterNode, topic: str, version: MQTTProtocolVersion, qos: int, *, lasts: bool = True
    ) -> None:
        self._version = version
        self._qos = qos
        self._lasts = lasts
        self._is_subscribed = Event()
        self._leaves = False
        super().__init__(node, topic)

    def _connect(self, name: str) -> Client:
        client = Client(
            CallbackAPIVersion.VERSION2,
            f"{name}-{self.queue}",
            protocol=self._version,
            transport=self.transport,
            reconnect_on_failure=False,
            **({} if self._version == MQTTv5 else {"clean_session": not self._lasts}),
        )
        client.username_pw_set("guest", "guest")
        self._secure(client)
        client.will_set(self.queue, b"0", self._qos)  # published, it would come out of order
        client.on_disconnect = self._disconnected
        options: dict[str, Any] = {}
        if self._version == MQTTv5:
            options["properties"] = Properties(PacketTypes.CONNECT)
            options["properties"].SessionExpiryInterval = 600 if self._lasts else 0
        host, port = self.node.addresses[self.listener]
        client.connect(host, port, keepalive=HEARTBEAT_S, **options)
        client.loop_start()
        return client

    def _disconnected(self, client: Client, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not self._leaves:
            self.failures.append(ConnectionError(f"disconnected: {reason}"))

    def publish(self) -> None:
        """See ``StayingClients``."""
        assert self._is_subscribed.wait(_ANSWER_S)
        client = self._connect("publisher")
        number = 0
        while not self._is_over.is_set() and not self.failures:
            number += 1
            sent = client.publish(self.queue, b"%d" % number, self._qos)
            sent.wait_for_publish(_ANSWER_S)
            assert sent.is_published(), f"{number} was not acknowledged"
            self.confirmed.append(number)
            self._is_over.wait(_PAUSE_S)
        self._is_published.set()
        self._leave(client)

    def consume(self) -> None:
        """See ``StayingClients``."""

        def taken(client: Client, data: Any, message: MQTTMessage) -> None:
            self.taken.append(int(message.payload))

        client = self._connect("subscriber")
        client.on_message = taken
        client.on_subscribe = lambda *_: self._is_subscribed.set()
        client.subscribe(self.queue, self._qos)
        wait_until(lambda: self.failures or self.has_ended, "the publisher does not end", timeout_s=LONGEST_S)
        self._leave(client)

    @property
    def has_ended(self) -> bool:
        """See ``StayingClients``. Messages on their way to a session that does not last are lost with the leader."""
        return self._is_published.is_set() if not self._lasts else super().has_ended

    def _leave(self, client: Client) -> None:
        self._leaves = True
        client.disconnect()
        stop_loop(client)
