"""The CONNECT of a client and its answer, to begin the connection again with another leader."""

from typing import Final

from gateway_mqtt.codec.data_types import read_bounded_varint, utf8
from gateway_mqtt.codec.decoding import decode_connect
from gateway_mqtt.codec.encoding import packet
from gateway_mqtt.codec.errors import malformed
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.properties import Properties, PropertyId, decode_properties
from gateway_mqtt.codec.reasons import CONNACK_3, ReasonCode

_CONNECT: Final = 0x10

_CLEAN_START: Final = 0x02

_REASON_OF_3: Final = {code: reason for reason, code in CONNACK_3.items()}


class ConnectAnswer:
    """A CONNACK of a leader (3.2)."""

    def __init__(self, version: int, body: bytes) -> None:
        """:raises MqttError: if it cannot be read."""
        if len(body) < 2:
            raise malformed(f"{len(body)} bytes in CONNACK")
        self.has_session = bool(body[0] & 1)
        self.properties: Properties = {}
        if version < 5:
            self.reason = _REASON_OF_3.get(body[1], ReasonCode.UNSPECIFIED_ERROR)
            return
        self.reason = ReasonCode(body[1]) if body[1] in _KNOWN else ReasonCode.UNSPECIFIED_ERROR
        self.properties, _ = decode_properties(body, 2, len(body), PacketType.CONNACK)


class RelayedConnect:
    """The CONNECT of a client, and what the first leader added to it.

    ``has_durable_session``: the session outlives the connection, so the next leader has it. ``can_be_repeated`` is
    false for logins of several steps (4.12).
    """

    def __init__(self, body: bytes) -> None:
        """:raises MqttError: if the CONNECT cannot be read."""
        connect = decode_connect(body)
        properties = connect.properties
        self.version = connect.version
        self.username = connect.username
        self.keep_alive_s = connect.keep_alive_s
        self.explains = properties.get(PropertyId.REQUEST_PROBLEM_INFORMATION, 1) == 1
        self.can_be_repeated = PropertyId.AUTHENTICATION_METHOD not in properties
        self.has_durable_session = not connect.clean_start
        if self.version == 5:
            self.has_durable_session = properties.get(PropertyId.SESSION_EXPIRY_INTERVAL, 0) > 0
        self._flags_at = len(connect.protocol_name) + 3
        self._body = body

    def accepted(self, answer: ConnectAnswer) -> None:
        """Note what the leader chose."""
        properties = answer.properties
        self.keep_alive_s = properties.get(PropertyId.SERVER_KEEP_ALIVE, self.keep_alive_s)
        if PropertyId.SESSION_EXPIRY_INTERVAL in properties:
            self.has_durable_session = properties[PropertyId.SESSION_EXPIRY_INTERVAL] > 0
        if PropertyId.ASSIGNED_CLIENT_IDENTIFIER in properties:
            self._assign(properties[PropertyId.ASSIGNED_CLIENT_IDENTIFIER])

    def _assign(self, client_id: str) -> None:
        """Put a client identifier in the place of the empty one."""
        at = self._flags_at + 3
        size, start = read_bounded_varint(self._body, at, len(self._body))
        at = start + size
        self._body = self._body[:at] + utf8(client_id) + self._body[at + 2 :]

    def again(self) -> bytes:
        """Return the CONNECT for another leader, which keeps the session if it has one."""
        body = bytearray(self._body)
        if self.has_durable_session:
            body[self._flags_at] &= ~_CLEAN_START
        return packet(_CONNECT, bytes(body))


_KNOWN: Final = {reason.value for reason in ReasonCode}
