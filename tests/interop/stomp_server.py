"""The STOMP server under test: the listeners of a gateway started for the session, or any server named by a URL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from tests.interop.broker import Broker
from tests.interop.mqtt_server import MqttServer
from tests.running import Gateway, gateway_in

#: Set to ``stomp://user:password@host:port`` to run the tests of STOMP clients against a server that is already there.
SERVER_URL: Final = os.environ.get("GATEWAY_TEST_STOMP_URL")


@dataclass(frozen=True, slots=True)
class StompServer:
    """Where a server listens, and who may log in. ``ports`` are those of the gateway's listeners, by name."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"
    ports: dict[str, int] = field(default_factory=dict)

    @classmethod
    def from_url(cls, url: str) -> "StompServer":
        """Read ``stomp://user:password@host:port``."""
        parts = urlsplit(url)
        host, port = parts.hostname or "127.0.0.1", parts.port or 61613
        return cls(host, port, unquote(parts.username or "guest"), unquote(parts.password or "guest"), {"stomp": port})

    @classmethod
    def of(cls, gateway: Gateway) -> "StompServer":
        """Return what a running gateway offers."""
        ports = {name: port for name, (_, port) in gateway.addresses.items()}
        return cls("127.0.0.1", ports["stomp"], ports=ports)

    @property
    def login(self) -> str:
        """Who may log in, as in a URL."""
        return f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"

    @property
    def amqp(self) -> Broker:
        """The same server to clients of AMQP."""
        return Broker(self.host, self.ports["amqp"])

    @property
    def mqtt(self) -> MqttServer:
        """The same server to clients of MQTT."""
        return MqttServer(self.host, self.ports["mqtt"], ports=self.ports)


@contextmanager
def running_server(directory: Path, *settings: str) -> Iterator[StompServer]:
    """Run a gateway with further settings; stopping it by SIGTERM must succeed."""
    with gateway_in(directory, *settings) as gateway:
        yield StompServer.of(gateway)
        exit_code = gateway.stop()
        assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"
