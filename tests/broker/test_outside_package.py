"""A plugin of another package, installed from its wheel, that uses every hook over all protocols."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

import paho.mqtt.client as paho
import pika
import pytest
import stomp
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pika.exceptions import NackError, ProbableAuthenticationError

from gateway import hookspecs
from tests.broker.test_plugin_changes import ctl
from tests.management_client import get, request
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

PACKAGE: Final = Path(__file__).parent / "outside_package"
NAME: Final = "acme-kit"
HOOKS: Final = sorted(name for name in vars(hookspecs) if name.startswith("gateway_"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the package, and install it into a directory of its own."""
    directory = tmp_path_factory.mktemp("outside")
    source = directory / "source"
    shutil.copytree(PACKAGE, source)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheels, target = directory / "wheels", directory / "installed"
    offline = ["--no-index", "--no-deps"]
    subprocess.run([*pip, "wheel", *offline, "--no-build-isolation", "-w", str(wheels), str(source)], check=True)
    (wheel,) = wheels.glob("acme_kit-*.whl")
    subprocess.run([*pip, "install", *offline, "--target", str(target), str(wheel)], check=True)
    return target


@pytest.fixture
def running(gateway: Gateway, installed: Path) -> Gateway:
    """Return a broker with the package, enabled in the virtual host ``acme`` that is created over HTTP."""
    gateway.environment = {**os.environ, "PYTHONPATH": str(installed)}
    gateway.start()
    request(gateway, "PUT", "vhosts/acme", {"plugins": {NAME: {"password": "secret"}}, "tracing": True})
    return gateway


def amqp(gateway: Gateway, password: str = "secret") -> pika.BlockingConnection:
    host, port = gateway.addresses["amqp"]
    credentials = pika.PlainCredentials("ann", password)
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, "acme", credentials))


def counts(gateway: Gateway) -> dict[str, int]:
    return {row["name"]: row["count"] for row in get(gateway, f"plugins/acme/{NAME}/resources/report")}


def test_it_uses_every_hook(running: Gateway) -> None:
    (row,) = [row for row in get(running, "plugins") if row["name"] == NAME]
    assert row["hooks"] == HOOKS
    assert row["source"] == "acme_kit of acme-kit"


def test_every_hook_works_over_the_protocols_http_and_gatewayctl(running: Gateway) -> None:
    connection = amqp(running)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.exchange_declare("e", "x-acme")
    channel.queue_declare("q", arguments={"x-acme-most-bytes": 10})
    channel.queue_bind("q", "e", "")
    channel.basic_publish("e", "any", b"amqp")
    with pytest.raises(NackError):
        channel.basic_publish("e", "any", b"more than ten bytes")
    publish_by_stomp(running)
    received = [channel.basic_get("q", auto_ack=True) for _ in range(2)]
    assert [body for _, _, body in received] == [b"amqp", b"stomp"]
    assert {properties.headers["acme-user"] for _, properties, _ in received} == {"ann"}
    connection.close()
    publish_by_mqtt(running)

    used = counts(running)
    assert used["logins"] >= 2
    assert used["dialogues"] == 1
    assert used["queues"] >= 1
    assert used["traced publishes"] >= 3
    assert used["traced deliveries"] >= 3

    samples = dict(re.findall(r'gateway_plugin_acme_kit_uses\{object="(\w+)",vhost="acme"\} (\S+)', scraped(running)))
    assert float(samples["traced_publishes"]) >= 3
    report = [line.split("\t") for line in ctl_line(running, NAME, "report", "-s").splitlines()]
    assert ["dialogues", "1"] in report
    ctl_line(running, NAME, "reset", "dialogues")
    assert "dialogues" not in counts(running)
    (panel,) = get(running, "ui-panels/acme")
    assert (panel["title"], panel["path"]) == ("Acme", f"/api/plugins/acme/{NAME}/resources/report")


def test_all_of_it_ends_when_it_is_disabled(running: Gateway) -> None:
    amqp(running).close()
    request(running, "DELETE", f"plugins/acme/{NAME}")
    with pytest.raises(HTTPError, match="404"):
        counts(running)
    assert get(running, "ui-panels") == get(running, "ctl-verbs") == []
    assert "gateway_plugin_acme_kit_uses{" not in scraped(running)
    with pytest.raises(ProbableAuthenticationError):
        amqp(running)


def scraped(gateway: Gateway) -> str:
    """Return the metrics of the broker."""
    host, port = gateway.addresses["prometheus"]
    with urlopen(f"http://{host}:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def ctl_line(gateway: Gateway, plugin: str, *words: str) -> str:
    return ctl(gateway, "call", "-p", "acme", plugin, *words)


def publish_by_stomp(gateway: Gateway) -> None:
    """Publish to the exchange ``e`` and wait for the receipt."""
    host, port = gateway.addresses["stomp"]
    client = stomp.Connection12([(host, port)], vhost="acme")
    receipts: list[str] = []

    class Listener(stomp.ConnectionListener):
        def on_receipt(self, frame: stomp.utils.Frame) -> None:
            receipts.append(frame.headers["receipt-id"])

    client.set_listener("", Listener())
    client.connect("ann", "secret", wait=True)
    client.send("/exchange/e/any", "stomp", headers={"receipt": "sent", "content-type": "text/plain"})
    wait_until(lambda: "sent" in receipts, lambda: "no receipt")
    client.disconnect()


def publish_by_mqtt(gateway: Gateway) -> None:
    """Log in with the authentication method of the package, and receive an own message."""
    host, port = gateway.addresses["mqtt"]
    properties = Properties(PacketTypes.CONNECT)
    properties.AuthenticationMethod = "ACME-WORD"
    properties.AuthenticationData = b"secret"
    received: SimpleQueue[tuple[str, bytes, object]] = SimpleQueue()
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "acme-client", protocol=paho.MQTTv5)
    client.username_pw_set("acme:word")
    client.on_connect = lambda client, *_: client.subscribe("acme/#", 1)
    client.on_subscribe = lambda client, *_: client.publish("acme/a", b"mqtt", 1)
    client.on_message = lambda client, data, message: received.put(
        (message.topic, message.payload, getattr(message.properties, "UserProperty", None))
    )
    client.connect(host, port, properties=properties)
    client.loop_start()
    try:
        assert received.get(timeout=20) == ("acme/a", b"mqtt", [("acme-user", "word")])
    finally:
        client.disconnect()
        stop_loop(client)
