"""Behind a proxy, a connection has the address of its client: in the log, in listings, and for loopback users."""

import json
import socket
import time
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.broker.raw import CLOSE, CLOSED, LOGIN, read_until
from tests.broker.tls.certificates import Authority
from tests.broker.tls.test_tls import client_context
from tests.running import Gateway
from tests.waiting import wait_until

CHANNEL_OPEN_OK = b"\x00\x14\x00\x0b"

HERE_V1 = b"PROXY TCP4 127.0.0.7 127.0.0.1 40000 5672\r\n"
AFAR_V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 5672\r\n"
AFAR_V2 = (
    b"\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x24" + socket.inet_pton(socket.AF_INET6, "2001:db8::7") * 2 + b"\x9c\x40\x16\x28"
)
LOCAL_V2 = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00"


@pytest.fixture
def proxied(gateway: Gateway) -> Gateway:
    return gateway.start("amqp.proxy_protocol=true")


def connected(gateway: Gateway, listener: str = "amqp") -> socket.socket:
    return socket.create_connection(gateway.addresses[listener], timeout=10)


def test_a_listing_shows_the_client_and_not_the_proxy(proxied: Gateway) -> None:
    with connected(proxied) as peer:
        peer.sendall(HERE_V1 + LOGIN)
        read_until(peer, CHANNEL_OPEN_OK)
        (connection,) = listed(proxied, "connections")
        assert (connection["peer_host"], connection["peer_port"]) == ("127.0.0.7", 40000)
        assert (connection["host"], connection["port"]) == ("127.0.0.1", 5672)
        assert connection["name"] == "127.0.0.7:40000 -> 127.0.0.1:5672"
        peer.sendall(CLOSE)
        read_until(peer, CLOSED)


@pytest.mark.parametrize("header", [AFAR_V1, AFAR_V2], ids=["v1", "v2"])
def test_guest_is_refused_for_a_remote_client_behind_a_local_proxy(proxied: Gateway, header: bytes) -> None:
    with connected(proxied) as peer:
        peer.sendall(header + LOGIN)
        assert CHANNEL_OPEN_OK not in everything(peer)
    line = proxied.log_has("connection closed")
    assert ("192.0.2.7:40000" in line) == (header == AFAR_V1)
    assert ("2001:db8::7:40000" in line) == (header == AFAR_V2)


def test_a_connection_of_the_proxy_itself_keeps_its_addresses(proxied: Gateway) -> None:
    with connected(proxied) as peer:
        own = peer.getsockname()
        peer.sendall(LOCAL_V2 + LOGIN)
        read_until(peer, CHANNEL_OPEN_OK)
        proxied.log_has(f"{own[0]}:{own[1]} ->")


def test_a_header_may_arrive_byte_by_byte(proxied: Gateway) -> None:
    with connected(proxied) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for octet in HERE_V1:
            peer.sendall(bytes([octet]))
            time.sleep(0.002)  # each byte arrives in a read of its own
        peer.sendall(LOGIN)
        read_until(peer, CHANNEL_OPEN_OK)


def test_a_connection_without_a_header_is_closed(proxied: Gateway) -> None:
    with connected(proxied) as peer:
        peer.sendall(LOGIN)
        assert everything(peer) == b""
    assert "no PROXY header" in proxied.log_has("proxy connection refused")


def test_without_the_setting_a_header_is_not_accepted(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as peer:
        peer.sendall(HERE_V1 + LOGIN)
        assert everything(peer) == b"AMQP\0\0\x09\x01"


def test_the_header_comes_before_tls(gateway: Gateway, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.sign("broker")
    gateway.start("amqp.proxy_protocol=true", "amqps.port=0", f"tls.certificate={certificate}", f"tls.key={key}")
    with connected(gateway, "amqps") as plain:
        plain.sendall(HERE_V1)
        with client_context(authority).wrap_socket(plain, server_hostname="127.0.0.1") as peer:
            peer.sendall(LOGIN)
            read_until(peer, CHANNEL_OPEN_OK)
            (connection,) = listed(gateway, "connections")
            assert (connection["peer_host"], connection["ssl"]) == ("127.0.0.7", True)


def everything(peer: socket.socket) -> bytes:
    """Read until the broker closes the connection."""
    received = b""
    try:
        while data := peer.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def listed(gateway: Gateway, what: str) -> Any:  # Any: JSON
    """Query the management API until the first entry appears."""
    host, port = gateway.addresses["management"]
    request = urllib.request.Request(f"http://{host}:{port}/api/{what}")
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())

    def entries() -> Any:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)

    return wait_until(entries, f"no {what}")
