"""WebSockets, TLS and PROXY headers over real sockets: whole conversations, addresses, and back-pressure both ways."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from wsproto.events import CloseConnection

from tests.broker.raw import CLOSE, CLOSED, LOGIN, declare, publish
from tests.broker.tls.certificates import Authority
from tests.broker.tls.test_tls import client_context
from tests.net.web_client import WebClient
from tests.net.web_server import FLOOD
from tests.running import PROJECT

HERE = b"PROXY TCP4 127.0.0.7 127.0.0.1 40000 5672\r\n"
AFAR = b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 5672\r\n"
CHANNEL_OPEN_OK = b"\x00\x14\x00\x0b"
DECLARED = b"\x00\x32\x00\x0b"

#: The most bytes buffered for a peer that does not read: Twisted's buffer and the system's, with a margin.
HELD = 24 * 1024 * 1024


class Server:
    """The process of ``web_server`` and its output."""

    def __init__(self, authority: Authority) -> None:
        self.trust = client_context(authority)
        command = [sys.executable, "-m", "tests.net.web_server", *map(str, authority.sign("broker"))]
        self.child = subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.ports: dict[str, int] = {}
        while (line := self.receive()) != "ready":
            name, port = line.split()
            self.ports[name] = int(port)

    def receive(self, about: str = "") -> str:
        """Return the next line of output that begins with this word; skip the others."""
        assert self.child.stdout is not None
        while (line := self.child.stdout.readline()) and not line.startswith(about):
            pass
        assert line, "the server ended"
        return line.strip()

    @contextmanager
    def connected(self, listener: str, header: bytes = b"") -> Iterator[WebClient]:
        with socket.create_connection(("127.0.0.1", self.ports[listener]), timeout=10) as plain:
            plain.sendall(header)
            if not listener.endswith("tls"):
                yield WebClient(plain, "amqp")
                return
            with self.trust.wrap_socket(plain, server_hostname="127.0.0.1") as wrapped:
                yield WebClient(wrapped, "amqp")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("web")
    running = Server(Authority(directory))
    yield running
    running.child.kill()
    running.child.wait()
    assert running.child.stdout is not None
    running.child.stdout.close()


@pytest.mark.parametrize(
    ("listener", "header"), [("plain", b""), ("tls", b""), ("proxied", HERE), ("proxied-tls", HERE)]
)
def test_a_whole_conversation_goes_through(server: Server, listener: str, header: bytes) -> None:
    with server.connected(listener, header) as client:
        client.send_bytes(LOGIN)
        client.receive_until(CHANNEL_OPEN_OK)
        client.send_bytes(declare("web") + publish("web", bytes(100_000)) + declare("web"))
        client.receive_until(DECLARED)
        client.send_bytes(CLOSE)
        received, code = client.receive_to_close()
        assert CLOSED in received
        assert code == 1000


@pytest.mark.parametrize("listener", ["plain", "tls"])
def test_a_close_by_the_client_ends_the_connection(server: Server, listener: str) -> None:
    with server.connected(listener) as client:
        client.send_bytes(LOGIN)
        client.receive_until(CHANNEL_OPEN_OK)
        client.send(CloseConnection(1000))
        assert client.receive_to_close() == (b"", 1000)


@pytest.mark.parametrize("listener", ["proxied", "proxied-tls"])
def test_the_guest_user_is_refused_from_a_remote_address_behind_a_proxy(server: Server, listener: str) -> None:
    with server.connected(listener, AFAR) as client:
        client.send_bytes(LOGIN)
        received, _ = client.receive_to_close()
        assert CHANNEL_OPEN_OK not in received


@pytest.mark.parametrize("listener", ["flood", "flood-tls"])
def test_a_client_that_does_not_read_is_not_sent_more(server: Server, listener: str) -> None:
    with server.connected(listener) as client:
        sent = int(server.receive("paused").split()[1])
        assert sent < HELD
        received, code = client.receive_to_close()
        assert (len(received), code) == (FLOOD, 1000)


@pytest.mark.parametrize("listener", ["sink", "sink-tls"])
def test_a_protocol_that_does_not_read_holds_its_client_back(server: Server, listener: str) -> None:
    size = 32 * 1024 * 1024
    with server.connected(listener) as client:
        client.send_bytes(bytes(size))
        client.send(CloseConnection(1000))
        assert int(server.receive("before").split()[1]) < HELD / 2
        client.receive_to_close()
    assert server.receive("all") == f"all {size}"
