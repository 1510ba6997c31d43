"""MQTT over WebSocket, with TLS and behind a proxy, at a whole gateway; and the refused connections."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from wsproto.events import TextMessage

from tests.broker.test_proxied import listed
from tests.broker.tls.certificates import Authority
from tests.broker.tls.test_tls import client_context
from tests.net.web_client import WebClient
from tests.running import Gateway

#: CONNECT of MQTT 3.1.1 with client id ``web``, clean session and no user name.
CONNECT = b"\x10\x0f\x00\x04MQTT\x04\x02\x00\x3c\x00\x03web"
ACCEPTED = b"\x20\x02\x00\x00"
SUBSCRIBE = b"\x82\x06\x00\x01\x00\x01t\x00"
SUBACK = b"\x90\x03\x00\x01\x00"
PUBLISH = b"\x30\x05\x00\x01thi"

HERE = b"PROXY TCP4 127.0.0.7 127.0.0.1 40000 15675\r\n"
AFAR = b"PROXY TCP4 192.0.2.7 127.0.0.1 40000 15675\r\n"


@contextmanager
def connected(gateway: Gateway, header: bytes = b"", origin: str = "") -> Iterator[WebClient]:
    with socket.create_connection(gateway.addresses["web_mqtt"], timeout=10) as line:
        line.sendall(header)
        yield WebClient(line, "mqtt", origin=origin)


def converse(client: WebClient) -> None:
    """Log in, subscribe, and receive a published message."""
    client.send_bytes(CONNECT)
    client.receive_until(ACCEPTED)
    client.send_bytes(SUBSCRIBE)
    client.receive_until(SUBACK)
    client.send_bytes(PUBLISH)
    client.receive_until(PUBLISH)


def test_mqtt_works_over_a_websocket(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        converse(client)


def test_6_0_0_2_packets_may_be_split_and_joined_by_messages(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        for octet in CONNECT + SUBSCRIBE[:3]:
            client.send_bytes(bytes([octet]))
        client.send_bytes(SUBSCRIBE[3:] + PUBLISH)
        client.receive_until(PUBLISH)


def test_6_0_0_1_a_text_message_closes_the_connection(gateway: Gateway) -> None:
    gateway.start()
    with connected(gateway) as client:
        client.send(TextMessage("text"))
        assert client.receive_to_close() == (b"", 1003)


def test_mqtt_works_over_a_websocket_with_tls(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> None:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    certificate, key = authority.sign("broker")
    gateway.start(
        "mqtts.port=0", "amqps.port=0", "web_mqtts.port=0", f"tls.certificate={certificate}", f"tls.key={key}"
    )
    with (
        socket.create_connection(gateway.addresses["web_mqtts"], timeout=10) as line,
        client_context(authority).wrap_socket(line, server_hostname="127.0.0.1") as wrapped,
    ):
        converse(WebClient(wrapped, "mqtt"))
        (connection,) = listed(gateway, "connections")
        assert (connection["ssl"], connection["ssl_protocol"]) == (True, (wrapped.version() or "").lower())


def test_an_anonymous_client_has_the_address_that_its_proxy_reports(gateway: Gateway) -> None:
    gateway.start("web_mqtt.proxy_protocol=true", "mqtt.failed_login_delay_s=0")
    with connected(gateway, HERE) as client:
        converse(client)
    with connected(gateway, AFAR) as client:
        client.send_bytes(CONNECT)
        read_until, code = client.receive_to_close()
        assert (read_until[:2], read_until[3] in (4, 5), code) == (b"\x20\x02", True, 1000)


def refused(client: WebClient) -> bool:
    client.send_bytes(CONNECT)
    read_until, _ = client.receive_to_close()
    return read_until[:3] == b"\x20\x02\x00" and read_until[3] == 5


def test_anonymous_web_pages_are_refused(gateway: Gateway) -> None:
    gateway.start("mqtt.failed_login_delay_s=0")
    with connected(gateway, origin="http://localhost") as client:
        assert refused(client)
    with connected(gateway) as client:
        converse(client)


def test_a_setting_permits_anonymous_web_pages(gateway: Gateway) -> None:
    gateway.start("mqtt.anonymous_from_pages=true")
    with connected(gateway, origin="http://localhost") as client:
        converse(client)


def test_the_log_warns_of_anonymous_clients_behind_a_proxy(gateway: Gateway) -> None:
    gateway.start("web_mqtt.proxy_protocol=true")
    assert gateway.log_has("anonymous clients are accepted behind a proxy")
