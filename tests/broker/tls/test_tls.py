"""The TLS listener: encrypted logins, client certificates, and clients that do not use TLS."""

import os
import socket
import ssl
from pathlib import Path
from typing import Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection
from pika.exceptions import AMQPConnectionError, ProbableAuthenticationError

from tests.broker.tls.certificates import Authority
from tests.interop.amqp_clients.pika_client import fetch
from tests.running import Gateway

DEFINITIONS: Final = """{
  "users": [{"name": "orders", "password": "secret", "tags": []},
            {"name": "CN=billing,O=acme", "password_hash": "", "tags": []}],
  "permissions": [{"user": "orders", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
                  {"user": "CN=billing,O=acme", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]
}"""
BY_COMMON_NAME: Final = 'vhosts."/".plugins.auth-certificate.login_from=common_name'


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def settings(authority: Authority, gateway: Gateway) -> list[str]:
    """Return the settings of the listener, without client certificates."""
    certificate, key = authority.sign("broker")
    definitions = gateway.directory / "definitions.json"
    definitions.write_text(DEFINITIONS)
    return [
        "amqps.port=0",
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        f"load_definitions={definitions}",
    ]


def client_context(authority: Authority, common_name: str | None = None) -> ssl.SSLContext:
    """Return a client's trust store, with its certificate if it has one."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if common_name is not None:
        context.load_cert_chain(*map(str, authority.sign(common_name)))
    return context


def connected(
    gateway: Gateway, context: ssl.SSLContext, credentials: object = None, listener: str = "amqps"
) -> BlockingConnection:
    host, port = gateway.addresses[listener]
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            host,
            port,
            credentials=credentials or pika.PlainCredentials("guest", "guest"),
            ssl_options=pika.SSLOptions(context, host),
            socket_timeout=5,
            stack_timeout=10,
        )
    )


def round_trip(connection: BlockingConnection) -> bool:
    """Publish a message of many TLS records, fetch it, and return whether it is the same."""
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.confirm_delivery()
    body = os.urandom(1_000_000)
    channel.basic_publish("", queue, body)
    return fetch(channel, queue, 1) == [body]


def test_plain_passwords_are_accepted_over_tls(gateway: Gateway, authority: Authority, settings: list[str]) -> None:
    gateway.start(*settings)
    with connected(gateway, client_context(authority)) as connection:
        assert round_trip(connection)


def test_a_consumer_gets_a_long_queue_over_tls(gateway: Gateway, authority: Authority, settings: list[str]) -> None:
    gateway.start(*settings)
    with connected(gateway, client_context(authority)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        for number in range(300):
            channel.basic_publish("", "q", number.to_bytes(4, "big") * 10_000)
        deliveries = channel.consume("q", auto_ack=True, inactivity_timeout=5)
        got = [body[:4] for _, (method, _, body) in zip(range(300), deliveries, strict=False) if method]
    assert got == [number.to_bytes(4, "big") for number in range(300)]


def test_a_client_certificate_logs_in_as_its_common_name(
    gateway: Gateway, authority: Authority, settings: list[str]
) -> None:
    gateway.start(*settings, "tls.verify=required", BY_COMMON_NAME)
    external = pika.credentials.ExternalCredentials()
    with connected(gateway, client_context(authority, "orders"), external) as connection:
        assert round_trip(connection)
    assert "user=orders" in gateway.log_has("connection authenticated")


def test_a_client_certificate_logs_in_as_its_subject_by_default(
    gateway: Gateway, authority: Authority, settings: list[str]
) -> None:
    gateway.start(*settings, "tls.verify=required")
    external = pika.credentials.ExternalCredentials()
    with connected(gateway, client_context(authority, "billing"), external) as connection:
        assert round_trip(connection)


def test_a_certificate_of_no_user_is_refused(gateway: Gateway, authority: Authority, settings: list[str]) -> None:
    gateway.start(*settings, "tls.verify=required", BY_COMMON_NAME)
    with pytest.raises(ProbableAuthenticationError):
        connected(gateway, client_context(authority, "stranger"), pika.credentials.ExternalCredentials())
    assert "mechanism=EXTERNAL" in gateway.log_has("authentication refused")


def test_a_password_is_sufficient_where_certificates_are_optional(
    gateway: Gateway, authority: Authority, settings: list[str]
) -> None:
    gateway.start(*settings, "tls.verify=optional")
    with connected(gateway, client_context(authority), pika.PlainCredentials("orders", "secret")) as connection:
        assert round_trip(connection)


def test_a_client_without_a_required_certificate_is_refused(
    gateway: Gateway, authority: Authority, settings: list[str], tmp_path: Path
) -> None:
    gateway.start(*settings, "tls.verify=required")
    with pytest.raises((AMQPConnectionError, ssl.SSLError)):
        connected(gateway, client_context(authority))
    (tmp_path / "others").mkdir()
    stranger = client_context(authority)
    stranger.load_cert_chain(*map(str, Authority(tmp_path / "others", "others").sign("orders")))
    with pytest.raises((AMQPConnectionError, ssl.SSLError)):
        connected(gateway, stranger)


def mechanisms_at(gateway: Gateway, context: ssl.SSLContext) -> bytes:
    """Return the first frame of the broker, which lists the mechanisms."""
    host, port = gateway.addresses["amqps"]
    with context.wrap_socket(socket.create_connection((host, port), timeout=5), server_hostname=host) as secure:
        secure.sendall(b"AMQP\x00\x00\x09\x01")
        return secure.recv(65536)


@pytest.mark.parametrize(("verify", "is_offered"), [("off", False), ("optional", True), ("required", True)])
def test_external_is_offered_where_certificates_are_requested(
    verify: str, is_offered: bool, gateway: Gateway, authority: Authority, settings: list[str]
) -> None:
    gateway.start(*settings, f"tls.verify={verify}")
    offered = mechanisms_at(gateway, client_context(authority, "orders"))
    assert b"PLAIN" in offered
    assert (b"EXTERNAL" in offered) is is_offered


def test_an_old_version_of_tls_is_refused(gateway: Gateway, authority: Authority, settings: list[str]) -> None:
    gateway.start(*settings, "tls.min_version=1.3")
    context = client_context(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((AMQPConnectionError, ssl.SSLError)):
        connected(gateway, context)
    assert "unsupported protocol" in gateway.log_has("connection closed")


def test_a_health_probe_without_tls_writes_nothing(gateway: Gateway, authority: Authority, settings: list[str]) -> None:
    gateway.start(*settings)
    with socket.create_connection(gateway.addresses["amqps"], timeout=8) as probe:
        probe.shutdown(socket.SHUT_WR)
        assert _all_from(probe) == b""
    with connected(gateway, client_context(authority)):
        pass
    gateway.log_has("connection closed")
    assert gateway.log.count("connection closed") == 1


@pytest.mark.parametrize(
    "bytes_sent",
    [b"AMQP\x00\x00\x09\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(70_000), b"\x16\x03\x01"],
    ids=["AMQP without TLS", "HTTP", "a bad TLS record", "half a TLS record"],
)
def test_a_client_without_tls_does_not_disturb_others(
    bytes_sent: bytes, gateway: Gateway, authority: Authority, settings: list[str]
) -> None:
    gateway.start(*settings, "amqp.login_timeout_s=1")
    with connected(gateway, client_context(authority)) as bystander:
        with socket.create_connection(gateway.addresses["amqps"], timeout=8) as peer:
            peer.sendall(bytes_sent)
            read_until = _all_from(peer)
        assert b"AMQP" not in read_until
        assert round_trip(bystander)
    assert "Traceback" not in gateway.log


def _all_from(peer: socket.socket) -> bytes:
    """Read until the broker closes the connection, which it must do."""
    read_until = b""
    try:
        while data := peer.recv(4096):
            read_until += data
    except ConnectionResetError:
        pass
    return read_until


def test_an_invalid_certificate_stops_the_start_with_one_line(gateway: Gateway, tmp_path: Path) -> None:
    for name in ("certificate.pem", "key.pem"):
        (tmp_path / name).write_text("nothing of the kind")
    settings = (f"tls.certificate={tmp_path}/certificate.pem", f"tls.key={tmp_path}/key.pem", "amqps.port=0")
    assert gateway.run_to_end(*settings) == 65
    assert [line for line in gateway.log.splitlines() if line.startswith("gateway: ")] == gateway.log.splitlines()[-1:]
    assert gateway.log.splitlines()[-1].startswith("gateway: tls: ")
