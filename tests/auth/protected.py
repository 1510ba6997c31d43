"""A gateway whose virtual host ``/`` has these plugins with these settings, and its clients."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pika
import pytest
import tomli_w

from tests.interop.mqtt_clients.mqtt_server import MqttServer
from tests.interop.mqtt_clients.paho_client import Paho, Refused
from tests.interop.stomp_clients.stomp_client import Refused as StompRefused
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import StompServer
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


def require_mqtt_refuses(gateway: Gateway, user: str, password: str) -> None:
    """Require that a login over MQTT 5 is answered with 0x86, bad user name or password."""
    with pytest.raises(Refused) as refused:
        Paho(mqtt(gateway), user=user, password=password).connect()
    assert refused.value.code == 0x86


def require_stomp_works(gateway: Gateway, user: str, password: str, wrong: str) -> None:
    """Require that a client of STOMP gets its own message back, and that a login with a wrong password is refused."""
    client = Stomp(stomp(gateway)).connect(user, password)
    client.subscribe("/queue/letters")
    client.send("/queue/letters", b"hello")
    assert client.bodies(1) == [b"hello"]
    client.disconnect()
    with pytest.raises(StompRefused):
        Stomp(stomp(gateway)).connect(user, wrong)
