"""Plugins change in a running broker over HTTP and by ``gatewayctl``; clients of all protocols stay connected."""

import threading
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pika
import pytest
import stomp
from click.testing import CliRunner

from gateway.cli.ctl.errors import CommandFailed
from gateway.cli.ctl.main import gatewayctl
from tests.broker.conftest import Connect
from tests.management_client import get, request
from tests.plugins.live import bound_with, first_bound
from tests.running import Gateway
from tests.waiting import wait_until

SLASH = "plugins/%2F"


@pytest.fixture
def plugins_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "mine.py").write_text(first_bound(2))
    (directory / "versioned.py").write_text(bound_with("v1"))
    return directory


def ctl(gateway: Gateway, *arguments: str) -> str:
    """Return the output of ``gatewayctl plugin``; an error is raised as ``CommandFailed``."""
    host, port = gateway.addresses["management"]
    line = ["--url", f"http://{host}:{port}", "-q", "plugin", *arguments]
    result = CliRunner().invoke(gatewayctl, line, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def state(gateway: Gateway, name: str, vhost: str = "%2F") -> Any:
    return get(gateway, f"plugins/{vhost}/{name}")


def test_over_http(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    assert state(gateway, "mine")["state"] == "disabled"
    request(gateway, "PUT", f"{SLASH}/mine", {})
    row = state(gateway, "mine")
    assert (row["state"], row["set_by"], row["version"], row["exchange_types"]) == (
        "enabled", "virtual host", 1, ["x-mine"],
    )  # fmt: skip
    (plugins_dir / "mine.py").write_text(first_bound(1))
    request(gateway, "POST", f"{SLASH}/mine/reload", {})
    assert (state(gateway, "mine")["version"], state(gateway, "mine")["former_version"]) == (2, 1)
    request(gateway, "POST", f"{SLASH}/mine/rollback", {})
    assert state(gateway, "mine")["version"] == 1
    gateway.restart(f"plugins_dir={plugins_dir}")
    assert state(gateway, "mine")["state"] == "enabled"
    request(gateway, "DELETE", f"{SLASH}/mine")
    assert state(gateway, "mine")["state"] == "disabled"


def test_a_virtual_host_made_over_http_enables_plugins(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    request(gateway, "PUT", "vhosts/made", {"plugins": {"mine": {}}})
    request(gateway, "PUT", "exchanges/made/e", {"type": "x-mine"})
    assert get(gateway, "exchanges/made/e")["type"] == "x-mine"
    request(gateway, "PUT", "plugins/made/exchange-modulus-hash", {})
    assert state(gateway, "exchange-modulus-hash", "made")["state"] == "enabled"


def test_by_gatewayctl(gateway: Gateway, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    ctl(gateway, "enable", "mine")
    assert "mine\tenabled" in ctl(gateway, "list", "-e", "-s").replace(" ", "")
    assert "is enabled" in ctl(gateway, "is_enabled", "mine")
    (plugins_dir / "mine.py").write_text(first_bound(1))
    ctl(gateway, "reload", "mine")
    ctl(gateway, "rollback", "mine")
    ctl(gateway, "disable", "mine")
    with pytest.raises(CommandFailed, match="is disabled"):
        ctl(gateway, "is_enabled", "mine")
    ctl(gateway, "settings", "auth-certificate", '{"login_from": "common_name"}')
    assert "common_name" in ctl(gateway, "settings", "auth-certificate")
    described = ctl(gateway, "describe", "auth-certificate")
    assert "login_from: 'common_name' or 'distinguished_name'; default 'distinguished_name'." in described


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("enable", "lost"), "'lost' was not found"),
        (("enable", "mine", "--settings", '{"a": 1}'), "has no settings, but was given a"),
        (("settings", "auth-certificate", '{"login_from": 1}'), "login_from: must be 'common_name' or"),
        (("disable", "exchange-direct"), "always enabled"),
        (("rollback", "mine"), "is not enabled"),
        (("enable", "rabbitmq_mqtt"), "MQTT is built in"),
        (("set", "mine"), "use plugin enable"),
        (("directories",), "plugins_dir"),
        (("upload", "mine", __file__), "plugins.allow_upload is false"),
    ],
)
def test_errors_say_what_to_do(gateway: Gateway, plugins_dir: Path, arguments: tuple[str, ...], reason: str) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    with pytest.raises(CommandFailed, match=reason):
        ctl(gateway, *arguments)


def test_a_file_is_uploaded_if_a_setting_allows_it(gateway: Gateway, plugins_dir: Path, tmp_path: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}", "plugins.allow_upload=true")
    source = tmp_path / "new.py"
    source.write_text(first_bound(1, "x-new"))
    ctl(gateway, "upload", "new", str(source))
    ctl(gateway, "enable", "new")
    assert state(gateway, "new")["exchange_types"] == ["x-new"]
    assert "plugin file uploaded" in gateway.log
    assert "user=guest" in gateway.log or '"guest"' in gateway.log
    source.write_text("def (")
    with pytest.raises(CommandFailed, match="is not Python"):
        ctl(gateway, "upload", "new", str(source))
    with pytest.raises(CommandFailed, match="is not a file"):
        ctl(gateway, "upload", "auth-internal", str(tmp_path / "new.py"))


class Load:
    """Publishes numbered messages over one protocol until it is stopped, and counts the publisher's disconnects."""

    def __init__(self) -> None:
        self.sent = 0
        self.disconnects = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(20)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self.publish(self.sent)
            except Exception:
                self.disconnects += 1
                return
            self.sent += 1

    def publish(self, number: int) -> None:
        """Publish one message, and wait until the broker confirmed it."""
        raise NotImplementedError


class AmqpLoad(Load):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        host, port = gateway.addresses["amqp"]
        self.connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def publish(self, number: int) -> None:
        self.channel.basic_publish("versioned", "amqp", str(number).encode(), mandatory=True)


class MqttLoad(Load):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, "load")
        self.client.username_pw_set("guest", "guest")
        self.client.on_disconnect = self._disconnected
        self.client.connect(*gateway.addresses["mqtt"])
        self.client.loop_start()
        wait_until(self.client.is_connected, lambda: "MQTT does not connect")

    def _disconnected(self, *arguments: object) -> None:
        self.disconnects += 1

    def publish(self, number: int) -> None:
        self.client.publish("mqtt", str(number), qos=1).wait_for_publish(10)


class StompLoad(Load, stomp.ConnectionListener):
    def __init__(self, gateway: Gateway) -> None:
        super().__init__()
        self._receipt = threading.Event()
        self.client = stomp.Connection12([gateway.addresses["stomp"]], vhost="/")
        self.client.set_listener("load", self)
        self.client.connect("guest", "guest", wait=True)

    def on_receipt(self, frame: Any) -> None:
        self._receipt.set()

    def on_disconnected(self) -> None:
        self.disconnects += 1

    def publish(self, number: int) -> None:
        self._receipt.clear()
        self.client.send("/exchange/versioned/stomp", str(number), headers={"receipt": str(number)})
        assert self._receipt.wait(10)


def test_versions_are_swapped_under_load_in_all_protocols(
    gateway: Gateway, connect: Connect, plugins_dir: Path
) -> None:
    """Each message is in exactly one queue, and each change has one clean boundary for each publisher."""
    gateway.start(f"plugins_dir={plugins_dir}")
    ctl(gateway, "enable", "versioned")
    channel = connect().channel()
    channel.exchange_declare("versioned", "x-versioned", durable=True)
    channel.exchange_bind("versioned", "amq.topic", "mqtt")
    for version in ("v1", "v2"):
        channel.queue_declare(version, durable=True)
        channel.queue_bind(version, "versioned", version)
    loads = {"amqp": AmqpLoad(gateway), "mqtt": MqttLoad(gateway), "stomp": StompLoad(gateway)}
    for load in loads.values():
        load.start()

    def wait_for_more() -> None:
        before = {name: load.sent for name, load in loads.items()}
        wait_until(
            lambda: all(load.sent > before[name] + 20 for name, load in loads.items()),
            lambda: f"publishers stopped: {[(load.sent, load.disconnects) for load in loads.values()]}",
        )

    wait_for_more()
    (plugins_dir / "versioned.py").write_text(bound_with("v2"))
    ctl(gateway, "reload", "versioned")
    wait_for_more()
    ctl(gateway, "rollback", "versioned")
    wait_for_more()
    for load in loads.values():
        load.stop()
    assert [load.disconnects for load in loads.values()] == [0, 0, 0]
    received = {version: _numbers(channel, version) for version in ("v1", "v2")}
    for name, load in loads.items():
        numbers = {version: received[version].get(name, []) for version in received}
        assert sorted(numbers["v1"] + numbers["v2"]) == list(range(load.sent)), name
        middle = numbers["v2"]
        assert middle == list(range(middle[0], middle[-1] + 1)), name
        assert numbers["v1"] == [number for number in range(load.sent) if not middle[0] <= number <= middle[-1]], name
    loads["mqtt"].client.disconnect()  # type: ignore[attr-defined]
    loads["mqtt"].client.loop_stop()  # type: ignore[attr-defined]
    loads["stomp"].client.disconnect()  # type: ignore[attr-defined]


def _numbers(channel: Any, queue: str) -> dict[str, list[int]]:
    """Return the numbers of the messages in a queue by protocol, in order."""
    found: dict[str, list[int]] = {}
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.setdefault(method.routing_key, []).append(int(body))
