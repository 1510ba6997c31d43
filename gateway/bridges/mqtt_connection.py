"""Connections to MQTT brokers as a client, with paho-mqtt in a thread of its own."""

import ssl
from collections.abc import Callable, Mapping, Sequence
from threading import Semaphore
from typing import Any, Final

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, MQTTv5, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from twisted.internet.defer import Deferred

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.handshake import end_handshake
from gateway.bridges.link import Lost

_KEEPALIVE_S: Final = 60
_TIMEOUT_S: Final = 30

#: How long the server keeps a session without a connection, in seconds; MQTT 3.1.1 has no limit.
_SESSION_EXPIRY_S: Final = 7 * 24 * 3600


class MqttRefused(Exception):
    """The server refused a connection or a subscription; the text is its reason."""


class MqttConnection:
    """One client with a session that survives its connections. Calls come on the reactor's thread.

    ``on_message`` is called with each message, of which ``prefetch`` may be unsettled: the thread waits for
    ``settled`` then, and the server's output waits in the socket. ``on_published`` is called with the packet
    identifier of a publish and whether it was accepted. ``lost`` is called with the reason when the connection ends.
    """

    def __init__(
        self, uri: BrokerUri, client_id: str, prefetch: int, reactor: Any, lost: Lost, *, is_bridge: bool = False
    ) -> None:
        self.is_five = uri.options.get("version") == "5"
        self.on_message: Callable[[MQTTMessage], None] = lambda message: None
        self.on_published: Callable[[int, bool], None] = lambda number, is_accepted: None
        self._uri = uri
        self._reactor = reactor
        self._lost = lost
        self._room = Semaphore(max(1, prefetch))
        self._is_closed = False
        self._opened: Deferred[None] = Deferred()
        self._subscribed: dict[int, Deferred[None]] = {}
        self._client = client = Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            protocol=MQTTv5 if self.is_five else MQTTv311,
            clean_session=None if self.is_five else False,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        self._prefetch = max(1, min(prefetch, 65_535))
        client.max_inflight_messages_set(self._prefetch)
        if is_bridge and not self.is_five:
            client.enable_bridge_mode()
        if uri.username:
            client.username_pw_set(uri.username, uri.password or None)
        client.on_connect = self._connected
        client.on_connect_fail = self._unreachable
        client.on_disconnect = self._disconnected
        client.on_subscribe = self._answered
        client.on_message = self._received
        client.on_publish = self._published

    async def connect(self) -> None:
        """Connect. :raises MqttRefused: when the server refuses; OSError: when a file of TLS cannot be read."""
        if self._uri.has_tls:
            self._client.tls_set_context(_tls_context(self._uri.options))
        options: dict[str, Any] = {}
        if self.is_five:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho's
            properties.SessionExpiryInterval = _SESSION_EXPIRY_S
            properties.ReceiveMaximum = self._prefetch
            options = {"clean_start": False, "properties": properties}
        self._client.connect_async(self._uri.host, self._uri.port, _KEEPALIVE_S, **options)
        self._client.loop_start()
        self._opened.addTimeout(_TIMEOUT_S, self._reactor)
        try:
            await self._opened
        except BaseException:
            self.close()
            raise

    async def subscribe(self, filters: Sequence[tuple[str, Any]]) -> None:
        """Subscribe to filters, each with a QoS or with options. :raises MqttRefused: when the server refuses one."""
        answered: Deferred[None] = Deferred()
        _, number = self._client.subscribe(list(filters))
        if number is None:
            raise MqttRefused("the connection ended before the subscription")
        self._subscribed[number] = answered
        answered.addTimeout(_TIMEOUT_S, self._reactor)
        await answered

    def publish(self, topic: str, body: bytes, qos: int, retain: bool, properties: Any) -> int:
        """Publish a message; return its packet identifier. :raises ValueError: when the topic is invalid."""
        return self._client.publish(topic, body, qos, retain, properties).mid

    def acknowledge(self, number: int, qos: int) -> None:
        """Acknowledge a message that was received."""
        self._client.ack(number, qos)

    def settled(self) -> None:
        """Make room for one more message."""
        self._room.release()

    def close(self) -> None:
        """Disconnect; safe to call twice. The session stays at the server."""
        if not self._is_closed:
            self._is_closed = True
            self._room.release(self._prefetch + 1)  # the thread may wait for room
            self._client.disconnect()

    # Called by paho, in its thread

    def _connected(self, client: Client, _: Any, flags: ConnectFlags, code: ReasonCode, properties: Any) -> None:
        self._call(self._open_ended, str(code) if code.is_failure else "")

    def _unreachable(self, client: Client, _: Any) -> None:
        self._is_closed = True
        client.disconnect()  # paho would try again by itself
        self._call(self._open_ended, "the server cannot be reached")

    def _disconnected(self, client: Client, _: Any, flags: DisconnectFlags, code: ReasonCode, properties: Any) -> None:
        self._call(self._ended, str(code))

    def _answered(self, client: Client, _: Any, number: int, codes: list[ReasonCode], properties: Any) -> None:
        refused = [str(code) for code in codes if code.is_failure]
        self._call(self._subscription_answered, number, refused[0] if refused else "")

    def _received(self, client: Client, _: Any, message: MQTTMessage) -> None:
        self._room.acquire()
        if not self._is_closed:
            self._call(self._deliver, message)

    def _published(self, client: Client, _: Any, number: int, code: ReasonCode, properties: Any) -> None:
        self._call(self.on_published_now, number, not code.is_failure)

    def _call(self, call: Callable[..., None], *arguments: object) -> None:
        self._reactor.callFromThread(call, *arguments)

    # On the reactor's thread again

    def on_published_now(self, number: int, is_accepted: bool) -> None:
        """Pass the answer to a publish on."""
        self.on_published(number, is_accepted)

    def _open_ended(self, fault: str) -> None:
        end_handshake(self._opened, MqttRefused(fault) if fault else None)

    def _subscription_answered(self, number: int, fault: str) -> None:
        answered = self._subscribed.pop(number, None)
        if answered is not None:
            end_handshake(answered, MqttRefused(f"subscription refused: {fault}") if fault else None)

    def _deliver(self, message: MQTTMessage) -> None:
        if not self._is_closed:
            self.on_message(message)

    def _ended(self, reason: str) -> None:
        self._open_ended(f"disconnected: {reason}")
        if not self._is_closed:
            self.close()
            self._lost(f"disconnected: {reason}")


def _tls_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context with the options of a URI. :raises OSError: when a file cannot be read."""
    context = ssl.create_default_context(cafile=options.get("cacertfile"))
    if options.get("verify") == "verify_none":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "certfile" in options:
        context.load_cert_chain(options["certfile"], options["keyfile"])
    return context
