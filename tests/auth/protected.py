"""A gateway whose virtual host ``/`` has these plugins with these settings, and its clients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pika
import tomli_w

from tests.interop.mqtt_server import MqttServer
from tests.interop.stomp_server import StompServer
from tests.running import Gateway


@contextmanager
def protected_gateway(
    directory: Path, plugins: Mapping[str, Mapping[str, object]], *settings: str
) -> Iterator[Gateway]:
    """Run a gateway until the end of the block; SIGTERM must stop it with success."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "gateway.toml"
    file.write_text(tomli_w.dumps({"vhosts": {"/": {"plugins": dict(plugins)}}}))
    gateway = Gateway(directory / "broker", *settings)
    gateway.options = ("--config", str(file))
    try:
        gateway.start()
        yield gateway
        assert gateway.stop() == 0, gateway.log
    finally:
        gateway.end()


def amqp(gateway: Gateway, user: str, password: str) -> pika.BlockingConnection:
    """Return a connection. :raises pika.exceptions.AMQPError: if the login is refused."""
    host, port = gateway.addresses["amqp"]
    login = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(
        pika.ConnectionParameters(host, port, credentials=login, blocked_connection_timeout=20)
    )


def mqtt(gateway: Gateway) -> MqttServer:
    """Return the MQTT listener."""
    return MqttServer.of(gateway)


def stomp(gateway: Gateway) -> StompServer:
    """Return the STOMP listener."""
    return StompServer.of(gateway)
