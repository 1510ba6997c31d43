"""An operator's own plugins, from the file to the client, as the documentation describes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pika.exceptions import AMQPConnectionError, ChannelClosedByBroker, ConnectionClosedByBroker

from tests.broker.conftest import Connect
from tests.management_client import get, put
from tests.running import PROJECT, Gateway

PAGE = PROJECT / "docs" / "plugins" / "exchange-type.md"


def example(name: str) -> str:
    """Return the code block on the page whose first line has this name."""
    found = re.search(
        rf"^```(?:python|toml)\n# {re.escape(name)}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"the page has no {name}"
    return found[1]


@pytest.fixture
def plugins_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "modulus.py").write_text(example("modulus.py"))
    return directory


def test_the_example_client_prints_the_output_on_the_page(gateway: Gateway, plugins_dir: Path, tmp_path: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}", 'vhosts."/".plugins.modulus={}')
    port = gateway.addresses["amqp"][1]
    client = tmp_path / "orders.py"
    client.write_text(example("orders.py").replace('("localhost")', f'("127.0.0.1", {port})'))
    done = subprocess.run(
        [sys.executable, str(client)], capture_output=True, text=True, timeout=30, check=True, stdin=subprocess.DEVNULL
    )
    (shown,) = re.findall(r"^```output\n(customers-0: .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert done.stdout == shown


def test_exchanges_of_the_type_are_recovered(gateway: Gateway, connect: Connect, plugins_dir: Path) -> None:
    settings = (f"plugins_dir={plugins_dir}", 'vhosts."/".plugins.modulus={}')
    gateway.start(*settings)
    channel = connect().channel()
    channel.exchange_declare("orders", "x-modulus", durable=True)
    channel.queue_declare("q", durable=True)
    channel.queue_bind("q", "orders")
    gateway.restart(*settings)
    channel = connect().channel()
    channel.confirm_delivery()
    channel.basic_publish("orders", "alice", b"an order")
    assert channel.basic_get("q")[2] == b"an order"


def test_a_virtual_host_without_the_plugin_does_not_have_its_type(
    gateway: Gateway, connect: Connect, plugins_dir: Path
) -> None:
    gateway.start(f"plugins_dir={plugins_dir}")
    with pytest.raises(ConnectionClosedByBroker, match="unknown exchange type 'x-modulus'") as closed:
        connect().channel().exchange_declare("orders", "x-modulus")
    assert closed.value.reply_code == 503


def test_without_its_plugin_an_exchange_is_inert_and_refuses_publishes(
    gateway: Gateway, connect: Connect, plugins_dir: Path
) -> None:
    gateway.start(f"plugins_dir={plugins_dir}", 'vhosts."/".plugins.modulus={}')
    connect().channel().exchange_declare("orders", "x-modulus", durable=True)
    gateway.stop()
    gateway.start()
    line = gateway.log_has("exchange.inert")
    assert "vhost=/ subject=orders type=x-modulus reason=\"unknown exchange type 'x-modulus'" in line
    channel = connect().channel()
    channel.exchange_declare("orders", passive=True)
    channel.confirm_delivery()
    refusal = r"exchange 'orders' in vhost '/' is inert: unknown exchange type 'x-modulus'"
    with pytest.raises(ChannelClosedByBroker, match=refusal) as closed:
        channel.basic_publish("orders", "alice", b"an order")
    assert closed.value.reply_code == 406


def test_inert_exchanges_and_plugins_are_listed(gateway: Gateway, connect: Connect, plugins_dir: Path) -> None:
    gateway.start(f"plugins_dir={plugins_dir}", 'vhosts."/".plugins.modulus={}')
    connect().channel().exchange_declare("orders", "x-modulus", durable=True)
    checked = [sys.executable, "-m", "gateway", "check", "--data", str(gateway.data)]
    done = subprocess.run(
        checked, cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 65
    assert "exchange 'orders' in vhost '/' would be inert: unknown exchange type 'x-modulus'" in done.stderr
    gateway.stop()
    (plugins_dir / "modulus.py").write_text("raise RuntimeError('out of order')\n")
    gateway.start(f"plugins_dir={plugins_dir}", 'vhosts."/".plugins.modulus={}')
    assert "out of order" in gateway.log_has("plugin inert")
    assert "unknown exchange type 'x-modulus'" in get(gateway, "exchanges/%2F/orders")["inert"]
    assert "inert" not in get(gateway, "exchanges/%2F/amq.fanout")
    assert "out of order" in get(gateway, "vhosts/%2F")["inert_plugins"]["modulus"]
    connect().channel().queue_declare("q", exclusive=True)


def test_a_missing_plugin_closes_only_its_own_virtual_host(gateway: Gateway, connect: Connect) -> None:
    gateway.start('vhosts."/".plugins.gone={}', "vhosts.other.tracing=false")
    gateway.log_has("virtual host refuses all logins")
    with pytest.raises(AMQPConnectionError):
        connect()
    put(gateway, "permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    assert connect(virtual_host="other").is_open
