"""The fuzzed ports: for each the listener, the sessions to mutate and the probe client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.fuzz import amqp_seeds, http_seeds, mqtt_seeds, probe_clients, stomp_seeds, web_seeds
from tests.fuzz.mutating import Session
from tests.fuzz.probe_clients import Address, ProbeClient


@dataclass(frozen=True)
class Port:
    """One port: ``listener`` is its name in the settings.

    ``sessions`` log in, after which the answer contains the bytes ``accepted``; ``refused`` do not. Both are
    mutated.
    """

    listener: str
    sessions: tuple[Session, ...]
    accepted: bytes
    probe: Callable[[Address], ProbeClient]
    refused: tuple[Session, ...] = ()


PORTS: Final[Mapping[str, Port]] = {
    port.listener: port
    for port in (
        Port("stomp", stomp_seeds.SESSIONS, b"CONNECTED", probe_clients.over_stomp),
        Port("amqp", amqp_seeds.SESSIONS, b"\0\x14\0\x0b", probe_clients.over_amqp),
        Port("mqtt", mqtt_seeds.SESSIONS, b"\x90", probe_clients.over_mqtt, mqtt_seeds.REFUSED),
        Port("web_stomp", web_seeds.STOMP_SESSIONS, b"CONNECTED", probe_clients.over_web_stomp, web_seeds.REFUSED),
        Port("web_mqtt", web_seeds.MQTT_SESSIONS, b"\x90", probe_clients.over_web_mqtt, web_seeds.REFUSED),
        Port("management", http_seeds.SESSIONS, b"HTTP/1.1 2", probe_clients.over_http),
    )
}
"""Every port by the name of its listener. A new one needs only sessions and a probe client."""
