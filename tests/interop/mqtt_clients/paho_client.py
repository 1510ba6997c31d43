"""A paho-mqtt client with blocking calls: its callbacks become results, each with a time limit."""

import itertools
import socket
from collections.abc import Iterable
from queue import Empty, Queue
from typing import Any, Final, NamedTuple

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.paho_loop import stop_loop

V31: Final = MQTTProtocolVersion.MQTTv31
V311: Final = MQTTProtocolVersion.MQTTv311
V5: Final = MQTTProtocolVersion.MQTTv5
VERSIONS: Final = {"3.1": V31, "3.1.1": V311, "5.0": V5}

#: The time limit of answers and expected messages.
ARRIVAL_TIMEOUT_S: Final = 15.0

#: The session expiry of persistent sessions, in seconds.
KEPT_S: Final = 600


class Connack(NamedTuple):
    """The content of CONNACK. ``properties`` are ``None`` before 5.0."""

    is_session_present: bool
    properties: Any


class Refused(Exception):
    """The server refused the connection. ``code`` is the 5.0 code, to which paho translates those of 3.x."""

    def __init__(self, reason: ReasonCode) -> None:
        super().__init__(str(reason))
        self.code: int = reason.value


class Paho:
    """One client. Its network loop runs in paho's thread while it is connected."""

    def __init__(
        self,
        server: MqttServer,
        version: MQTTProtocolVersion = V5,
        client_id: str = "",
        *,
        keeps_session: bool = False,
        acknowledges: bool = True,
        user: str | None = None,
        password: str | None = None,
    ) -> None:
        self._server = server
        self._version = version
        self._keeps_session = keeps_session
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2,
            client_id,
            clean_session=None if version == V5 else not keeps_session,
            protocol=version,
            reconnect_on_failure=False,
            manual_ack=not acknowledges,
        )
        if user != "" and (user or server.user):
            self.client.username_pw_set(user or server.user, server.password if password is None else password)
        self.client.max_inflight_messages_set(1000)
        self._welcomes: Queue[tuple[Any, ReasonCode, Any]] = Queue()
        self._departures: Queue[ReasonCode] = Queue()
        self._messages: Queue[paho.MQTTMessage] = Queue()
        self._answers: Queue[tuple[int, list[int]]] = Queue()
        self._fences = itertools.count()
        self.client.on_connect = lambda _c, _u, flags, reason, values: self._welcomes.put((flags, reason, values))
        self.client.on_disconnect = lambda _c, _u, _flags, reason, _said: self._departures.put(reason)
        self.client.on_message = lambda _c, _u, message: self._messages.put(message)
        self.client.on_subscribe = lambda _c, _u, mid, reasons, _said: self._answered(mid, reasons)
        self.client.on_unsubscribe = lambda _c, _u, mid, reasons, _said: self._answered(mid, reasons or [])
        self.client.on_publish = lambda _c, _u, mid, reason, _said: self._answered(mid, [reason])

    # Connections

    def connect(self, *, clean_start: bool | None = None, port: int | None = None, **properties: Any) -> Connack:
        """Connect with 5.0 properties. :raises Refused: with the code of CONNACK."""
        options: dict[str, Any] = {}
        if self._version == V5:
            kept = {"SessionExpiryInterval": KEPT_S} if self._keeps_session else {}
            options["clean_start"] = (not self._keeps_session) if clean_start is None else clean_start
            options["properties"] = properties_of(PacketTypes.CONNECT, **kept, **properties)
        self.client.connect(self._server.host, port or self._server.port, keepalive=30, **options)
        self.client.loop_start()
        flags, reason, values = self._welcomes.get(timeout=ARRIVAL_TIMEOUT_S)
        if reason.is_failure:
            stop_loop(self.client)
            raise Refused(reason)
        return Connack(flags.session_present, values)

    def disconnect(self, **properties: Any) -> None:
        """Send DISCONNECT and wait until the connection is closed."""
        self.client.disconnect(properties=properties_of(PacketTypes.DISCONNECT, **properties) if properties else None)
        self.wait_for_the_end()

    def vanish(self) -> None:
        """Close the socket without DISCONNECT, like a broken network."""
        line = self.client.socket()
        assert line is not None
        line.shutdown(socket.SHUT_RDWR)
        self.wait_for_the_end()

    def wait_for_the_end(self) -> ReasonCode:
        """Wait until the connection is closed; return the server's reason, if any."""
        reason = self._departures.get(timeout=ARRIVAL_TIMEOUT_S)
        stop_loop(self.client)
        return reason

    def close(self) -> None:
        """Disconnect in any state; safe to call twice."""
        self.client.disconnect()
        stop_loop(self.client)

    # Messages

    def subscribe(self, *filters: str, qos: int = 0, **options: Any) -> list[int]:
        """Subscribe; return the codes of SUBACK. ``options`` are 5.0 options and ``properties``."""
        properties = options.pop("properties", None)
        wanted: Any = [(filter, qos) for filter in filters]
        if self._version == V5:
            wanted = [(filter, SubscribeOptions(qos, **options)) for filter in filters]
        _, mid = self.client.subscribe(wanted, properties=properties)
        return self._answer_to(mid)

    def unsubscribe(self, filter: str) -> list[int]:
        """Unsubscribe; return the codes of UNSUBACK, empty before 5.0."""
        _, mid = self.client.unsubscribe(filter)
        assert mid is not None
        return self._answer_to(mid)

    def publish(
        self, topic: str, payload: bytes | str = b"", *, qos: int = 0, retain: bool = False, **properties: Any
    ) -> int:
        """Publish and wait for the acknowledgement; return the code of PUBACK or PUBREC, 0 without one."""
        mid = self.start_publish(topic, payload, qos=qos, retain=retain, **properties)
        return self._answer_to(mid)[0]

    def start_publish(
        self, topic: str, payload: bytes | str = b"", *, qos: int = 0, retain: bool = False, **properties: Any
    ) -> int:
        """Publish without waiting; return the packet identifier."""
        values = properties_of(PacketTypes.PUBLISH, **properties) if properties else None
        return self.client.publish(topic, payload, qos, retain, values).mid

    def wait_for_publishes(self, mids: Iterable[int]) -> None:
        """Wait until all of these are acknowledged."""
        for mid in mids:
            self._answer_to(mid)

    def next(self) -> Any:  # Any: paho's message type has no types for properties
        """Return the next received message."""
        try:
            return self._messages.get(timeout=ARRIVAL_TIMEOUT_S)
        except Empty:
            raise AssertionError("no message was received in time") from None

    def payloads(self, count: int) -> list[bytes]:
        """Return the payloads of the next ``count`` messages."""
        return [self.next().payload for _ in range(count)]

    @property
    def unread(self) -> int:
        """The number of received messages that ``next`` has not returned yet."""
        return self._messages.qsize()

    def receives_nothing_more(self) -> bool:
        """Whether a message published now on this connection is the next one received."""
        topic = f"fence/{self.client._client_id.decode()}/{next(self._fences)}"
        for qos in (0, 1):
            self.subscribe(topic, qos=qos)
            self.publish(topic, qos=qos)
            if self.next().topic != topic:
                return False
            self.unsubscribe(topic)
        return True

    def _answered(self, mid: int, reasons: Iterable[ReasonCode]) -> None:
        self._answers.put((mid, [reason.value for reason in reasons]))

    def _answer_to(self, wanted: int) -> list[int]:
        """Return the codes of the next answer, which must be for this packet."""
        mid, codes = self._answers.get(timeout=ARRIVAL_TIMEOUT_S)
        assert mid == wanted, f"the answer is for packet {mid}, not {wanted}"
        return codes


def properties_of(packet: int, **values: Any) -> Properties:
    """Return properties of a packet, with paho's names."""
    properties = Properties(packet)
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
