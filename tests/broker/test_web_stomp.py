"""STOMP over WebSocket, with TLS and behind a proxy, at a whole gateway: text and bytes, and login by certificate."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from wsproto.events import CloseConnection, TextMessage

from tests.broker.tls.certificates import Authority
from tests.broker.tls.test_tls import client_context
from tests.net.web_client import WebClient
from tests.running import Gateway

CONNECT = "CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0"
SUBSCRIBE = "SUBSCRIBE\nid:0\ndestination:/queue/web\nreceipt:r\n\n\0"
SEND = "SEND\ndestination:/queue/web\n\nhé\0"
UNNAMED = b"CONNECT\naccept-version:1.2\nhost:/\n\n\0"


@contextmanager
def connected(gateway: Gateway, subprotocol: str = "v12.stomp", header: bytes = b"") -> Iterator[WebClient]:
    with socket.create_connection(gateway.addresses["web_stomp"], timeout=10) as line:
        line.sendall(header)
        yield WebClient(line, subprotocol)


def read_text_until(client: WebClient, wanted: str) -> str:
    """Read until the text messages contain this; any other message fails the test."""
    read_until = ""
    while wanted not in read_until:
        for event in client.receive():
            assert isinstance(event, TextMessage), event
            read_until += event.data
    return read_until


@pytest.mark.parametrize("subprotocol", ["v10.stomp", "v11.stomp", "v12.stomp"])
def test_text_is_answered_by_text(gateway: Gateway, subprotocol: str) -> None:
    gateway.start()
    with connected(gateway, subprotocol) as client:
        client.send(TextMessage(CONNECT))
        assert "version:1.2" in read_text_until(client, "CONNECTED")
        client.send(TextMessage(SUBSCRIBE))
        read_text_until(client, "receipt-id:r")
        client.send(TextMessage(SEND))
        assert "content-length:3" in read_text_until(client, "hé\0")


def test_bytes_are_answered_by_bytes(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        client.send_bytes(CONNECT.encode())
        client.receive_until(b"CONNECTED")
        client.send_bytes(SUBSCRIBE.encode() + b"SEND\ndestination:/queue/web\n\n\xff\xfe\0")
        assert b"content-length:2" in client.receive_until(b"\xff\xfe\0")


def test_frames_may_be_split_and_joined_by_messages(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        for letter in CONNECT:
            client.send(TextMessage(letter))
        client.send(TextMessage(SUBSCRIBE + "\n\n" + SEND))
        read_text_until(client, "hé\0")


def test_an_error_is_sent_before_the_close(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        client.send(TextMessage(CONNECT + "NONSENSE\n\n\0"))
        read_until, events = "", []
        while not any(isinstance(event, CloseConnection) for event in events):
            events = client.receive()
            read_until += "".join(event.data for event in events if isinstance(event, TextMessage))
        assert "message:Bad command" in read_until


def test_a_certificate_logs_in_over_a_websocket_with_tls(
    gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> None:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    certificate, key = authority.sign("broker")
    definitions = gateway.directory / "definitions.json"
    definitions.write_text(
        '{"users": [{"name": "device", "password_hash": "", "tags": []}], "permissions":'
        ' [{"user": "device", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]}'
    )
    gateway.start(
        "web_stomps.port=0",
        "tls.verify=optional",
        'vhosts."/".plugins.auth-certificate.login_from=common_name',
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        f"load_definitions={definitions}",
    )
    context = client_context(authority, "device")
    with (
        socket.create_connection(gateway.addresses["web_stomps"], timeout=10) as line,
        context.wrap_socket(line, server_hostname="127.0.0.1") as wrapped,
    ):
        client = WebClient(wrapped, "v12.stomp")
        client.send_bytes(UNNAMED)
        client.receive_until(b"CONNECTED")
    with (
        socket.create_connection(gateway.addresses["stomps"], timeout=10) as line,
        context.wrap_socket(line, server_hostname="127.0.0.1") as wrapped,
    ):
        wrapped.sendall(UNNAMED)
        assert wrapped.recv(4096).startswith(b"CONNECTED\n")


def test_a_default_user_has_the_address_that_its_proxy_reports(gateway: Gateway) -> None:
    gateway.start(
        "stomp.proxy_protocol=true",
        "stomp.default_user=guest",
        "stomp.default_passcode=guest",
        "stomp.implicit_connect=true",
    )
    for address, answer in (("127.0.0.7", b"MESSAGE\n"), ("192.0.2.7", b"ERROR\n")):
        with socket.create_connection(gateway.addresses["stomp"], timeout=10) as line:
            line.sendall(f"PROXY TCP4 {address} 127.0.0.1 40000 61613\r\n".encode())
            line.sendall(b"SUBSCRIBE\ndestination:/queue/q\n\n\0SEND\ndestination:/queue/q\n\nhi\0")
            assert line.recv(4096).startswith(answer)
