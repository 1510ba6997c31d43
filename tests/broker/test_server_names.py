"""Several certificates: a TLS client that names a host (SNI) gets the certificate of that host."""

import signal
import socket
import ssl
from pathlib import Path

import pytest

from tests.broker.tls.certificates import Authority
from tests.management_client import request
from tests.running import Gateway

#: The name that a client sends, and the common name of the certificate that it gets.
NAMES = [
    ("mqtt.example.com", "mqtt"),
    ("MQTT.Example.COM", "mqtt"),
    ("a.wild.example.com", "wild"),
    ("a.b.wild.example.com", "broker"),
    ("amqp.example.com", "broker"),
    ("other.example.org", "broker"),
    (None, "broker"),
]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def running(gateway: Gateway, authority: Authority) -> Gateway:
    """Return a gateway with a certificate for amqp.example.com and two further ones."""
    certificate, key = authority.sign("broker", "amqp.example.com")
    further = [
        authority.sign_together("mqtt", "mqtt.example.com"),
        authority.sign_together("wild", "*.wild.example.com", "mqtt.example.com"),
    ]
    listed = ", ".join(f'"{file}"' for file in further)
    return gateway.start(
        f"tls.certificate={certificate}", f"tls.key={key}", f"tls.further_certificates=[{listed}]", "web_mqtts.port=0"
    )


def certificate_for(gateway: Gateway, authority: Authority, name: str | None, listener: str = "amqps") -> str:
    """Return the common name in the certificate that a client gets."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.check_hostname = False
    with (
        socket.create_connection(gateway.addresses[listener], timeout=5) as raw,
        context.wrap_socket(raw, server_hostname=name) as secure,
    ):
        subject = secure.getpeercert()["subject"]  # type: ignore[index]  # the context verifies certificates
    return next(value for part in subject for name, value in part if name == "commonName")


@pytest.mark.parametrize(("name", "certificate"), NAMES)
def test_a_client_gets_the_certificate_of_the_host_it_names(
    running: Gateway, authority: Authority, name: str | None, certificate: str
) -> None:
    assert certificate_for(running, authority, name) == certificate


@pytest.mark.parametrize("listener", ["mqtts", "stomps"])
def test_every_listener_with_tls_has_all_certificates(running: Gateway, authority: Authority, listener: str) -> None:
    assert certificate_for(running, authority, "mqtt.example.com", listener) == "mqtt"


def test_a_client_that_checks_the_name_accepts_its_certificate(running: Gateway, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    with (
        socket.create_connection(running.addresses["amqps"], timeout=5) as raw,
        context.wrap_socket(raw, server_hostname="mqtt.example.com") as secure,
    ):
        secure.sendall(b"AMQP\x00\x00\x09\x01")
        assert b"PLAIN" in secure.recv(65536)


def test_a_reload_renews_the_certificates(running: Gateway, authority: Authority, tmp_path: Path) -> None:
    renewed = authority.sign_together("renewed", "mqtt.example.com")
    (tmp_path / "mqtt-both.pem").write_bytes(renewed.read_bytes())
    assert request(running, "POST", "reload") == {"applied": [], "needs_restart": [], "kept": [], "certificates": 3}
    assert certificate_for(running, authority, "mqtt.example.com") == "renewed"


def test_a_reload_by_signal_with_a_broken_one_changes_nothing(
    running: Gateway, authority: Authority, tmp_path: Path
) -> None:
    file = tmp_path / "mqtt-both.pem"
    file.write_text("nothing")
    running.child.send_signal(signal.SIGHUP)
    assert f"tls.further_certificates: {file}: " in running.log_has("reload refused")
    assert certificate_for(running, authority, "mqtt.example.com") == "mqtt"


def test_the_report_of_tls_lists_the_certificates_with_their_names(running: Gateway) -> None:
    report = request(running, "GET", "tls")
    rows = [(row["is_default"], row["host_names"]) for row in report["certificates"]]
    assert rows == [
        (True, ["amqp.example.com"]),
        (False, ["mqtt.example.com"]),
        (False, ["*.wild.example.com", "mqtt.example.com"]),
    ]
    assert report["allowed_versions"] == ["tlsv1.3", "tlsv1.2"]
    assert "TLS_AES_256_GCM_SHA384" in report["cipher_suites"]


def test_expiry_checks_cover_all_certificates(running: Gateway) -> None:
    with pytest.raises(Exception, match="503"):
        request(running, "GET", "health/checks/certificate-expiration/1/days")


def test_a_certificate_without_names_of_hosts_is_refused(gateway: Gateway, authority: Authority) -> None:
    certificate, key = authority.sign("broker", "amqp.example.com")
    nameless = authority.sign_together("nameless")
    settings = (f"tls.certificate={certificate}", f"tls.key={key}", f'tls.further_certificates=["{nameless}"]')
    assert gateway.run_to_end(*settings) == 65
    assert f"{nameless}: the certificate has no name of a host" in gateway.log
