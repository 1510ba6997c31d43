"""The MQTT server under test: the listeners of a gateway started for the session, or any server named by a URL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tests.running import Gateway, gateway_in

#: Set to ``mqtt://user:password@host:port`` to run the tests of MQTT clients against a server that is already there.
SERVER_URL: Final = os.environ.get("GATEWAY_TEST_MQTT_URL")


@dataclass(frozen=True, slots=True)
class MqttServer:
    """Where a server listens, and who may log in; a user of ``""`` connects without a name.

    ``ports`` are those of the gateway's listeners by name: ``mqtt``, ``mqtts``, ``web_mqtt``.
    """

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    ports: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_url(cls, url: str) -> "MqttServer":
        """Read ``mqtt://user:password@host:port``."""
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 1883
        return cls(host, port, unquote(parts.username or ""), unquote(parts.password or ""), {"mqtt": port})

    @classmethod
    def of(cls, gateway: Gateway) -> "MqttServer":
        """Return what a running gateway offers."""
        ports = {name: port for name, (_, port) in gateway.addresses.items()}
        return cls("127.0.0.1", ports["mqtt"], ports=ports)


@contextmanager
def running_server(directory: Path, *settings: str) -> Iterator[MqttServer]:
    """Run a gateway with further settings; stopping it by SIGTERM must succeed.

    Who may not log in hears of it at once, so that tests of that need no patience.
    """
    with gateway_in(directory, "mqtt.failed_login_delay_s=0", *settings) as gateway:
        yield MqttServer.of(gateway)
        exit_code = gateway.stop()
        assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"
