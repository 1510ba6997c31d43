"""The protocols of a broker. A new protocol is a subclass of ``ServedProtocol`` and an entry of ``PROTOCOLS``."""

from typing import Final

from gateway.node.protocols.amqp import AmqpProtocol
from gateway.node.protocols.mqtt import MqttProtocol
from gateway.node.protocols.served import ProtocolListener, ServedProtocol, Services, listeners_of
from gateway.node.protocols.stomp import StompProtocol

PROTOCOLS: Final[tuple[type[ServedProtocol], ...]] = (AmqpProtocol, MqttProtocol, StompProtocol)

LISTENERS: Final = sorted(
    (listener for protocol in PROTOCOLS for listener in listeners_of(protocol)), key=lambda listener: listener.is_tls
)
"""All listeners of clients: those without TLS first."""

__all__ = ["LISTENERS", "PROTOCOLS", "ProtocolListener", "ServedProtocol", "Services"]
