"""Clients wait at the ports while the broker starts; exhausted file descriptors refuse only new connections."""

import resource
import socket
from contextlib import ExitStack

import pytest
from pika.exceptions import AMQPError

from tests.broker.conftest import Connect
from tests.broker.raw import HEADER
from tests.ports import free_port
from tests.running import Gateway, connected_when_it_listens
from tests.waiting import wait_until

SLOW = """
import time
from gateway.api import hookimpl

@hookimpl
def gateway_exchange_types():
    time.sleep(4)
    return {}
"""


@pytest.fixture(autouse=True)
def from_scratch(gateway: Gateway) -> None:
    """Start ``python -m gateway``, imports included."""
    gateway.from_scratch = True


def test_clients_wait_while_the_broker_starts(gateway: Gateway) -> None:
    plugins = gateway.directory / "plugins"
    plugins.mkdir(mode=0o755)
    (plugins / "slow.py").write_text(SLOW)
    port = free_port()
    gateway._spawn((f"plugins_dir={plugins}", 'vhosts."/".plugins.slow={}', f"amqp.port={port}"))
    with connected_when_it_listens(port) as peer:
        assert "is running" not in gateway.output
        peer.sendall(HEADER)
        assert peer.recv(1) == b"\x01"


def test_exhausted_descriptors_refuse_only_new_connections(gateway: Gateway, connect: Connect) -> None:
    gateway.start()
    channel = connect().channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    resource.prlimit(gateway.child.pid, resource.RLIMIT_NOFILE, (160, 160))
    with ExitStack() as peers:
        refused = 0
        for _ in range(200):
            peer = peers.enter_context(socket.create_connection(gateway.addresses["amqp"], timeout=10))
            peer.sendall(HEADER)
            try:
                refused += peer.recv(1) == b""
            except ConnectionResetError:
                refused += 1
        assert 80 < refused < 180
        line = gateway.log_has("connection refused: no file descriptors are left")
        assert gateway.log.count("connection refused: no file descriptors") == 1, line
        channel.basic_publish("", "q", b"still works")

    def is_accepted() -> bool:
        try:
            return bool(connect().is_open)
        except (AMQPError, OSError):
            return False

    wait_until(is_accepted, "new connections are refused although descriptors are free")
    assert "Traceback" not in gateway.log


def test_the_limit_of_descriptors_is_raised_to_the_maximum_allowed(gateway: Gateway) -> None:
    gateway.start()
    soft, hard = resource.prlimit(gateway.child.pid, resource.RLIMIT_NOFILE)
    assert soft == hard or soft == 2**20
