"""Clients wait at the ports while the broker starts; exhausted file descriptors refuse only new connections."""

import os
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

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


def test_without_any_descriptor_the_listener_waits_and_serves_again_when_connections_end(
    gateway: Gateway, connect: Connect
) -> None:
    gateway.start()
    channel = connect().channel()
    with ExitStack() as peers:
        early = [peers.enter_context(greeted(gateway)) for _ in range(30)]
        assert not any(map(is_ended, early))
        in_use = len(list(Path(f"/proc/{gateway.child.pid}/fd").iterdir()))
        resource.prlimit(gateway.child.pid, resource.RLIMIT_NOFILE, (in_use, in_use))  # accept fails with EMFILE
        for _ in range(40):
            late = peers.enter_context(socket.create_connection(gateway.addresses["amqp"], timeout=10))
            late.sendall(HEADER)
            assert is_ended(late)
        before_s = cpu_s(gateway)
        channel.connection.process_data_events(1)  # nothing arrives: the listener must not be ready all the time
        assert cpu_s(gateway) - before_s < 0.5
        channel.queue_declare("q", exclusive=True)  # who is connected is served
        for peer in early[:10]:
            peer.close()
        wait_until(lambda: not is_ended(peers.enter_context(greeted(gateway))), "new connections are still refused")
    assert "Traceback" not in gateway.log


def greeted(gateway: Gateway) -> socket.socket:
    """Return a connection that has sent the header of AMQP; its answer was not read."""
    peer = socket.create_connection(gateway.addresses["amqp"], timeout=10)
    peer.sendall(HEADER)
    return peer


def is_ended(peer: socket.socket) -> bool:
    """Return whether the broker ends a connection instead of answering."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def cpu_s(gateway: Gateway) -> float:
    """Return the processor time of the broker, in seconds."""
    times = Path(f"/proc/{gateway.child.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def test_the_limit_of_descriptors_is_raised_to_the_maximum_allowed(gateway: Gateway) -> None:
    gateway.start()
    soft, hard = resource.prlimit(gateway.child.pid, resource.RLIMIT_NOFILE)
    assert soft == hard or soft == 2**20
