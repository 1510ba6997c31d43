"""The broker's listeners, from the API's overview."""

from dataclasses import dataclass
from typing import Final

from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text

WILDCARDS: Final = ("", "0.0.0.0", "::")

PURPOSES: Final = {
    "amqp": "AMQP 0-9-1",
    "amqp/ssl": "AMQP 0-9-1 over TLS",
    "http": "HTTP API",
    "https": "HTTP API over TLS",
    "mqtt": "MQTT",
    "mqtt/ssl": "MQTT over TLS",
    "stomp": "STOMP",
    "stomp/ssl": "STOMP over TLS",
    "http/web-mqtt": "MQTT over WebSockets",
    "https/web-mqtt": "MQTT over WebSockets and TLS",
    "http/web-stomp": "STOMP over WebSockets",
    "https/web-stomp": "STOMP over WebSockets and TLS",
    "clustering": "inter-node and CLI tool communication",
}


@dataclass(frozen=True, slots=True)
class Listener:
    """One listening socket of the broker."""

    interface: str
    port: int
    protocol: str

    @property
    def is_wildcard(self) -> bool:
        """Whether it is bound to all addresses of the machine."""
        return self.interface in WILDCARDS

    @property
    def purpose(self) -> str:
        """The protocol's display name."""
        return PURPOSES.get(self.protocol, self.protocol)

    def __str__(self) -> str:
        interface = f"[{self.interface}]" if ":" in self.interface else self.interface
        return f"Interface: {interface}, port: {self.port}, protocol: {self.protocol}, purpose: {self.purpose}"

    def as_json(self) -> JsonObject:
        """Return the fields of rabbitmqctl's status."""
        return {"interface": self.interface, "port": self.port, "protocol": self.protocol, "purpose": self.purpose}


def listeners_of(overview: Json) -> list[Listener]:
    """Return the listeners, ordered by port."""
    found = [
        Listener(text(each, "ip_address"), number(each, "port"), text(each, "protocol"))
        for each in objects(part(overview, "listeners"))
    ]
    return sorted(found, key=lambda listener: (listener.port, listener.interface))
