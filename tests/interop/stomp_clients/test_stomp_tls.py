"""stomp.py and stompit over TLS, with passwords and with client certificates."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import pytest
from stomp.exception import ConnectFailedException

from tests.broker.tls.certificates import Authority
from tests.interop import node_package
from tests.interop.stomp_clients.stomp_client import CONNECTIONS, Refused, Stomp
from tests.interop.stomp_clients.stomp_server import StompServer

#: The user of the certificate with common name ``lamp``, and the only queue it may use.
LAMP: Final = "CN=lamp,O=acme"

DEFINITIONS: Final = {
    "vhosts": [{"name": "/"}],
    "users": [
        {"name": "guest", "password": "guest", "tags": ""},
        {"name": LAMP, "password": "secret", "tags": ""},
    ],
    "permissions": [
        {"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
        {"user": LAMP, "vhost": "/", "configure": "^light$", "write": "^(amq.default|light)$", "read": "^light$"},
    ],
}

Files = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure_server(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[StompServer]:
    """Run a gateway that requests certificates without requiring them."""
    directory = tmp_path_factory.mktemp("secure")
    (directory / "definitions.json").write_text(json.dumps(DEFINITIONS))
    certificate, key = authority.sign("broker")
    settings = [
        f"load_definitions={directory / 'definitions.json'}",
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        "tls.verify=optional",
        'vhosts."/".plugins.auth-certificate={}',
    ]
    with StompServer.running(directory, *settings) as running:
        yield running


@pytest.fixture
def secure(stomp: Callable[..., Stomp], secure_server: StompServer, authority: Authority) -> Callable[..., Stomp]:
    """Create clients that trust the authority; with a ``common_name`` they have a certificate."""

    def make(version: str = "1.2", common_name: str | None = None, trusted: Path = authority.certificate) -> Stomp:
        tls = {"ca_certs": str(trusted)}
        if common_name is not None:
            tls["cert_file"], tls["key_file"] = map(str, authority.sign(common_name))
        return stomp(version, at=secure_server, tls=tls)

    return make


@pytest.mark.parametrize("version", CONNECTIONS)
def test_messages_are_sent_and_received_over_tls(secure: Callable[..., Stomp], name: str, version: str) -> None:
    body = bytes(range(256)) * 1000
    one, other = secure(version).connect(), secure(version).connect()
    one.subscribe(f"/topic/{name}", ack="client")
    other.send(f"/topic/{name}", body)
    message = one.next()
    assert message.body == body
    one.ack(message)
    one.disconnect()


def test_login_by_password_over_tls(secure: Callable[..., Stomp]) -> None:
    with pytest.raises(Refused, match="Bad CONNECT"):
        secure().connect(password="wrong")


def test_a_client_closes_the_connection_to_an_untrusted_server(secure: Callable[..., Stomp], tmp_path: Path) -> None:
    stranger = secure(trusted=Authority(tmp_path, "stranger").certificate)
    with pytest.raises(ConnectFailedException):
        stranger.connection.connect("guest", "guest", wait=True)


@pytest.mark.parametrize("version", CONNECTIONS)
def test_a_client_logs_in_by_its_certificate(secure: Callable[..., Stomp], version: str) -> None:
    lamp = secure(version, "lamp").connect_by_certificate()
    lamp.subscribe("/queue/light")
    lamp.send("/queue/light", "on")
    assert lamp.next().body == b"on"
    lamp.connection.send("/queue/other", "what it may not")
    assert lamp.error().headers["message"] == "access_refused"


def test_a_login_has_precedence_over_a_certificate(secure: Callable[..., Stomp], name: str) -> None:
    client = secure(common_name="lamp").connect("guest", "guest")
    client.subscribe(f"/topic/{name}")
    client.send(f"/topic/{name}", "what a lamp may not")
    assert client.next().body == b"what a lamp may not"


@pytest.mark.parametrize("common_name", ["unknown", None], ids=["of an unknown user", "none"])
def test_a_certificate_of_an_unknown_user_is_refused(secure: Callable[..., Stomp], common_name: str | None) -> None:
    with pytest.raises(Refused, match="Bad CONNECT"):
        secure(common_name=common_name).connect_by_certificate()


@pytest.mark.timeout(node_package.TIMEOUT_S)
@pytest.mark.usefixtures("installed_package")
@pytest.mark.parametrize("sentence", node_package.sentences("stompit.mjs"))
def test_stompit_works_over_tls(secure_server: StompServer, authority: Authority, sentence: str) -> None:
    files = urlencode({"ca": authority.certificate})
    url = f"stomps://{secure_server.login}@{secure_server.host}:{secure_server.ports['stomps']}?{files}"
    node_package.check_scenario("stompit.mjs", url, sentence)


@pytest.mark.timeout(node_package.TIMEOUT_S)
@pytest.mark.usefixtures("installed_package")
def test_stompit_logs_in_by_certificate(secure_server: StompServer, authority: Authority) -> None:
    certificate, key = authority.sign("lamp")
    files = urlencode({"ca": authority.certificate, "cert": certificate, "key": key})
    url = f"stomps://{secure_server.host}:{secure_server.ports['stomps']}?{files}"
    node_package.check_scenario("stompit_certificate.mjs", url, "login by certificate")
