"""The start: its output, and the errors that prevent it, each in one line and with its exit code."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from tests.broker.conftest import Connect
from tests.broker.hashes import USERS, definitions
from tests.interop.amqp_clients.pika_client import parameters
from tests.running import HOST, LISTENERS, PROJECT, Gateway, gateway_in

CONFIGURATION: Final = 65
UNAVAILABLE: Final = 69


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command line until it exits."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )


def complaint(gateway: Gateway) -> str:
    """Return the one line with the reason why the gateway did not start."""
    lines = [line for line in gateway.log.splitlines() if line.startswith("gateway: ")]
    assert len(lines) == 1, gateway.log
    assert "Traceback" not in gateway.log
    return lines[0].removeprefix("gateway: ")


# Output


def test_the_start_prints_the_listeners_and_first_commands(gateway: Gateway) -> None:
    gateway.from_scratch = True
    gateway.start()
    lines = gateway.output.splitlines()
    port = gateway.addresses["management"][1]
    assert lines[0].startswith("gateway ")
    assert lines[0].endswith(f" is running, data in {gateway.data}")
    listeners = ("amqp", "mqtt", "web_mqtt", "stomp", "web_stomp", "management", "prometheus")
    assert [line.split() for line in lines[1:8]] == [
        [name, f"{HOST}:{gateway.addresses[name][1]}"] for name in listeners
    ]
    assert lines[9].endswith(f"gateway quickstart --url http://{HOST}:{port}")


def test_port_0_selects_a_free_port_and_prints_it(gateway: Gateway, connect: Connect) -> None:
    gateway.start("amqp.port=0")
    assert gateway.addresses["amqp"][1] > 1023
    assert connect().is_open


def test_a_disabled_listener_does_not_listen(gateway: Gateway) -> None:
    gateway.start(*(f"{listener}.port=off" for listener in LISTENERS))
    assert gateway.addresses == {}
    assert gateway.stop() == 0


def test_overrides_reach_the_broker(gateway: Gateway, connect: Connect) -> None:
    gateway.start("amqp.heartbeat_s=7", "amqp.frame_max=8192", "amqp.channel_max=3", "default_vhost=main")
    connection = connect(virtual_host="main")
    tuned = connection._impl.params
    assert (tuned.heartbeat, tuned.frame_max, tuned.channel_max) == (7, 8192, 3)


def test_an_override_changes_a_setting_of_the_file(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("[amqp]\nheartbeat_s = 5\nframe_max = 4096\n")
    checked = command("check", "--config", str(file), "--set", "amqp.heartbeat_s=6")
    assert checked.returncode == 0
    assert "heartbeat_s = 6\nframe_max = 4096\n" in checked.stdout
    assert checked.stderr == ""


def test_check_prints_the_errors_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bind = "localhost"\n[amqp]\nport = 70000\n')
    checked = command("check", "--config", str(file), "--data", str(tmp_path / "data"))
    assert checked.returncode == CONFIGURATION
    assert checked.stdout == ""
    assert [line.split(": ")[2] for line in checked.stderr.splitlines()] == ["bind", "amqp.port"]
    assert not (tmp_path / "data").exists()


# Errors at the start


def test_a_port_in_use_stops_the_start(gateway: Gateway) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert gateway.run_to_end(f"amqp.port={port}") == CONFIGURATION
    assert complaint(gateway) == f"amqp.port: cannot listen on {HOST}:{port}: Address already in use"
    assert gateway.output == ""


def test_a_data_directory_in_use_stops_the_start(gateway: Gateway, tmp_path: Path) -> None:
    gateway.start()
    second = Gateway(tmp_path / "second", f"data={gateway.data}")
    second.data = gateway.data
    assert second.run_to_end() == UNAVAILABLE
    assert complaint(second) == f"the store in {gateway.data} is in use by process {gateway.child.pid}: stop it first"
    assert gateway.stop() == 0


@pytest.mark.parametrize("place", ["/proc/gateway", "file/data"])
def test_a_data_directory_that_cannot_be_created_stops_the_start(place: str, gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    gateway.data = tmp_path / place
    assert gateway.run_to_end() == UNAVAILABLE
    assert complaint(gateway).startswith(f"the data directory {gateway.data} cannot be used: ")


def test_an_invalid_store_stops_the_start(gateway: Gateway) -> None:
    gateway.data.mkdir()
    (gateway.data / "data.mdb").write_bytes(b"not a store" * 1000)
    assert gateway.run_to_end() == UNAVAILABLE
    assert complaint(gateway).startswith(f"the store in {gateway.data} cannot be opened: ")


def test_a_broken_plugin_does_not_stop_the_start(gateway: Gateway, tmp_path: Path, connect: Connect) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "broken.py").write_text("import os\n\nos.nothing_of_the_kind\n")
    gateway.start(f"plugins_dir={plugins}")
    line = gateway.log_has("plugin not loaded")
    assert f"{plugins}/broken.py:3" in line
    assert "nothing_of_the_kind" in line
    assert connect().is_open


def test_a_plugin_directory_writable_by_others_stops_the_start(gateway: Gateway, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    plugins.chmod(0o777)
    assert gateway.run_to_end(f"plugins_dir={plugins}") == CONFIGURATION
    assert complaint(gateway).startswith(f"plugins_dir: {plugins} must belong to root or to the user of the broker")


def test_definitions_that_cannot_be_applied_stop_the_start(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text('{"queues": [{"name": "q", "vhost": "absent"}]}')
    assert gateway.run_to_end(f"load_definitions={file}") == CONFIGURATION
    assert complaint(gateway).startswith(f"{file}: ")


def test_a_log_file_that_cannot_be_written_stops_the_start(gateway: Gateway) -> None:
    assert gateway.run_to_end("log.file=/proc/none/gateway.log") == CONFIGURATION
    assert complaint(gateway).startswith("log.file: ")


# Definitions and users


def test_users_with_every_kind_of_hash_can_log_in(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    file.write_text(definitions())
    gateway.start(f"load_definitions={file}")
    for user in USERS:
        assert connect(credentials=pika.PlainCredentials(user, f"{user}'s secret")).is_open
        with pytest.raises(AMQPConnectionError):
            connect(credentials=pika.PlainCredentials(user, "wrong"))


def test_the_example_definitions_can_be_loaded_and_used(gateway: Gateway, connect: Connect) -> None:
    gateway.start(f"load_definitions={PROJECT}/etc/definitions.json")
    channel = connect(virtual_host="shop", credentials=pika.PlainCredentials("orders", "orders-demo")).channel()
    channel.confirm_delivery()
    channel.basic_publish("orders.events", "order.paid.card", b"invoice me")
    channel.basic_publish("orders.events", "order.sent", b"unrouted")
    assert channel.basic_get("orders.invoices")[2] == b"invoice me"
    assert channel.basic_get("orders.unrouted")[2] == b"unrouted"


def test_definitions_can_be_applied_again(gateway: Gateway, connect: Connect) -> None:
    definitions = f"load_definitions={PROJECT}/etc/definitions.json"
    gateway.start(definitions)
    assert gateway.stop() == 0
    gateway.start(definitions)
    assert connect(virtual_host="shop", credentials=pika.PlainCredentials("orders", "orders-demo")).is_open


def test_the_default_user_and_virtual_host_are_those_of_the_settings(tmp_path: Path) -> None:
    settings = ("default_user=admin", "default_pass=s3cret", "default_vhost=main")
    with gateway_in(tmp_path, *settings) as gateway:
        own = parameters(gateway.broker, virtual_host="main", credentials=pika.PlainCredentials("admin", "s3cret"))
        with pika.BlockingConnection(own) as connection:
            assert connection.is_open
        with pytest.raises(AMQPConnectionError):
            pika.BlockingConnection(parameters(gateway.broker))


def test_a_user_outside_loopback_users_may_be_named_guest(gateway: Gateway, connect: Connect) -> None:
    gateway.start("loopback_users=[]")
    assert connect().is_open
