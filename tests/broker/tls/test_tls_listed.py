"""TLS connections in the management API: protocol, cipher, and the client's certificate."""

import json
import re
import ssl
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

import pika
import pytest

from tests.broker.tls.certificates import Authority
from tests.running import Gateway

WITHOUT: Final = dict.fromkeys(
    ("ssl_protocol", "ssl_cipher", "ssl_key_exchange", "ssl_hash", "peer_cert_subject", "peer_cert_issuer")
)


def listed(gateway: Gateway) -> Any:
    """Return the listed connection, which must be the only one."""
    host, port = gateway.addresses["management"]
    request = Request(f"http://{host}:{port}/api/connections")
    request.add_header("Authorization", f"Basic {b64encode(b'guest:guest').decode()}")
    with urlopen(request, timeout=5) as answer:
        (connection,) = json.load(answer)
    return connection


def shown(gateway: Gateway, listener: str, context: ssl.SSLContext | None) -> Any:
    """Return the listing of a connection while it is open."""
    host, port = gateway.addresses[listener]
    options = None if context is None else pika.SSLOptions(context, host)
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, ssl_options=options, socket_timeout=5))
    try:
        return listed(gateway)
    finally:
        connection.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def started(authority: Authority, gateway: Gateway) -> Gateway:
    certificate, key = authority.sign("broker")
    files = (f"tls.certificate={certificate}", f"tls.key={key}", f"tls.ca={authority.certificate}")
    return gateway.start("amqps.port=0", "tls.verify=optional", *files)


def test_a_connection_through_tls(started: Gateway, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE+AESGCM")
    connection = shown(started, "amqps", context)
    assert (connection["ssl"], connection["ssl_protocol"], connection["ssl_hash"]) == (True, "tlsv1.2", "aead")
    assert re.fullmatch("ecdhe_(rsa|ecdsa)", connection["ssl_key_exchange"])
    assert re.fullmatch("aes_(128|256)_gcm", connection["ssl_cipher"])
    assert connection["peer_cert_subject"] is None
    context.load_cert_chain(*map(str, authority.sign("billing")))
    connection = shown(started, "amqps", context)
    assert connection["peer_cert_subject"].startswith("CN=billing")
    assert "=" in connection["peer_cert_issuer"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}Z - \d{4}-\d\d-\d\dT[\d:]{8}Z", connection["peer_cert_validity"])


def test_a_connection_without_tls(started: Gateway) -> None:
    connection = shown(started, "amqp", None)
    assert connection["ssl"] is False
    assert {name: connection[name] for name in WITHOUT} == WITHOUT
