"""paho-mqtt logins: users, virtual hosts, certificates, anonymous clients, and the codes of refusals."""

import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from paho.mqtt.enums import MQTTProtocolVersion

from tests.broker.tls.certificates import Authority
from tests.interop.gateways import gateway_in
from tests.interop.mqtt_clients.mqtt_server import MqttServer, running_server
from tests.interop.mqtt_clients.paho_client import V5, V31, V311, Paho, Refused

BAD_USER_NAME_OR_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
CLIENT_IDENTIFIER_NOT_VALID: Final = 0x85

NOTHING: Final = "^$"
ALL: Final = ".*"


def user(name: str) -> dict[str, object]:
    return {"name": name, "password": "secret", "tags": ""}


def permission(name: str, vhost: str = "/", write: str = ALL, read: str = ALL) -> dict[str, object]:
    return {"user": name, "vhost": vhost, "configure": ALL, "write": write, "read": read}


DEFINITIONS: Final = {
    "vhosts": [{"name": "/"}, {"name": "factory"}, {"name": "a:b"}],
    "users": [user(name) for name in ("sensor", "listener", "mute", "homeless", "CN=lamp,O=acme", "tidy", "nosy")],
    "permissions": [
        permission("sensor"),
        permission("sensor", "factory"),
        permission("sensor", "a:b"),
        permission("listener", write="^mqtt-subscription-"),
        permission("mute", write=NOTHING),
        permission("CN=lamp,O=acme"),
        permission("tidy"),
        permission("nosy"),
    ],
    "topic_permissions": [
        {"user": name, "vhost": "/", "exchange": "amq.topic", "write": pattern, "read": pattern}
        for name, pattern in {"tidy": r"^device\.{client_id}\.", "nosy": r"^device\.{client_id}"}.items()
    ],
}

Client = Callable[..., Paho]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logins")


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory)


@pytest.fixture(scope="module")
def server(directory: Path, authority: Authority) -> Iterator[MqttServer]:
    """Run a gateway with its own users, virtual hosts and TLS."""
    (directory / "definitions.json").write_text(json.dumps(DEFINITIONS))
    certificate, key = authority.sign("broker")
    settings = [
        f"load_definitions={directory / 'definitions.json'}",
        "mqtts.port=0",
        f"tls.certificate={certificate}",
        f"tls.key={key}",
        f"tls.ca={authority.certificate}",
        "tls.verify=optional",
    ]
    with running_server(directory, *settings) as running:
        yield running


def echoes(one: Paho, topic: str = "device/one/state") -> bool:
    """Whether the client receives what it publishes."""
    one.subscribe(topic, qos=1)
    one.publish(topic, b"echo", qos=1)
    return one.next().payload == b"echo"


def test_user_name_and_password(paho: Client, version: MQTTProtocolVersion) -> None:
    one = paho(version, "one", user="sensor", password="secret")
    one.connect()
    assert echoes(one)


def test_an_anonymous_client_publishes_and_subscribes(paho: Client, version: MQTTProtocolVersion) -> None:
    one = paho(version, "one", user="")
    one.connect()
    assert echoes(one)


@pytest.mark.parametrize(
    ("name", "password", "code"),
    [
        pytest.param("sensor", "wrong", BAD_USER_NAME_OR_PASSWORD, id="a wrong password"),
        pytest.param("stranger", "secret", BAD_USER_NAME_OR_PASSWORD, id="an unknown user"),
        pytest.param("nowhere:sensor", "secret", BAD_USER_NAME_OR_PASSWORD, id="an unknown virtual host"),
        pytest.param("sensor", "", BAD_USER_NAME_OR_PASSWORD, id="an empty password"),
        pytest.param("homeless", "secret", NOT_AUTHORIZED, id="no permissions in the virtual host"),
        pytest.param("factory:listener", "secret", NOT_AUTHORIZED, id="permissions in another virtual host"),
    ],
)
def test_a_refused_client_gets_the_reason(
    paho: Client, version: MQTTProtocolVersion, name: str, password: str, code: int
) -> None:
    with pytest.raises(Refused) as refused:
        paho(version, "one", user=name, password=password).connect()
    assert refused.value.code == code


def test_3_1_requires_a_client_identifier(paho: Client) -> None:
    nameless = paho(V31, "x")
    nameless.client._client_id = b""  # paho never sends an empty one in 3.1
    with pytest.raises(Refused) as refused:
        nameless.connect()
    assert refused.value.code == CLIENT_IDENTIFIER_NOT_VALID


def test_virtual_hosts_are_isolated(paho: Client, version: MQTTProtocolVersion) -> None:
    here, there = (paho(version, "one", user=name, password="secret") for name in ("sensor", "factory:sensor"))
    here.connect()
    there.connect()  # the same client identifier, in another virtual host
    here.subscribe("#", qos=1)
    assert echoes(there)
    assert here.receives_nothing_more()


def test_the_virtual_host_ends_at_the_last_colon_of_the_user_name(paho: Client) -> None:
    one = paho(V5, "one", user="a:b:sensor", password="secret")
    one.connect()
    assert echoes(one)


# Permissions


def test_a_client_that_publishes_without_permission_is_disconnected(paho: Client, version: MQTTProtocolVersion) -> None:
    one = paho(version, "one", user="listener", password="secret")
    one.connect()
    one.start_publish("device/one", b"x", qos=0 if version == V5 else 1)
    reason = one.wait_for_the_end()
    assert version != V5 or reason.value == NOT_AUTHORIZED


def test_an_acknowledged_publish_without_permission_is_refused_and_the_connection_stays(paho: Client) -> None:
    one = paho(V5, "one", user="listener", password="secret")
    one.connect()
    assert one.publish("device/one", b"x", qos=1) == NOT_AUTHORIZED
    assert one.subscribe("device/one", qos=1) == [1]


def test_a_subscription_without_permission_is_refused(paho: Client, version: MQTTProtocolVersion) -> None:
    one = paho(version, "one", user="mute", password="secret")
    one.connect()
    code = {V31: 0x80, V311: 0x80, V5: NOT_AUTHORIZED}[version]
    assert one.subscribe("device/one", qos=1) == [code]


def test_permissions_with_the_client_identifier(paho: Client, version: MQTTProtocolVersion) -> None:
    one = paho(version, "lamp.1", user="tidy", password="secret")
    one.connect()
    assert echoes(one, "device/lamp.1/state")
    assert one.subscribe("device/lamp.2/state", qos=1) != [1]
    assert one.subscribe("device/lampX1/state", qos=1) != [1]  # the dot matches literally
    one.start_publish("device/lamp.2/state", b"x", qos=0 if version == V5 else 1)
    one.wait_for_the_end()


@pytest.mark.parametrize(("client_id", "filter"), [("*", "device/+/state"), ("#", "device/#"), ("+", "device/+/state")])
def test_a_client_named_like_a_wildcard_gets_no_other_topics(paho: Client, client_id: str, filter: str) -> None:
    one = paho(V5, client_id, user="nosy", password="secret")
    one.connect()
    assert one.subscribe(filter, qos=1) == [NOT_AUTHORIZED]


def test_a_setting_keeps_clients_that_publish_without_permission(paho: Client, tmp_path: Path) -> None:
    (tmp_path / "definitions.json").write_text(json.dumps(DEFINITIONS))
    settings = [f"load_definitions={tmp_path / 'definitions.json'}", "mqtt.disconnect_on_unauthorized=false"]
    with running_server(tmp_path, *settings) as lenient:
        one = paho(V5, "one", user="listener", password="secret", at=lenient)
        one.connect()
        assert one.publish("device/one", b"x", qos=1) == NOT_AUTHORIZED
        assert one.subscribe("device/one", qos=1) == [1]


def test_a_setting_refuses_anonymous_clients(paho: Client, tmp_path: Path) -> None:
    with running_server(tmp_path, "mqtt.anonymous_user=") as strict:
        with pytest.raises(Refused) as refused:
            paho(V5, "one", user="", at=strict).connect()
        assert refused.value.code == NOT_AUTHORIZED


def test_a_wrong_password_is_answered_after_a_delay(paho: Client, tmp_path: Path) -> None:
    """The time is not measured; the answer comes from the gateway's timer."""
    with gateway_in(tmp_path, "mqtt.failed_login_delay_s=1") as gateway:
        with pytest.raises(Refused) as refused:
            paho(V5, "one", user="guest", password="wrong", at=MqttServer.of(gateway)).connect()
        assert refused.value.code == BAD_USER_NAME_OR_PASSWORD


# TLS


def trusting(one: Paho, authority: Authority, common_name: str | None = None) -> Paho:
    certificate: tuple[Any, Any] = authority.sign(common_name) if common_name else (None, None)
    one.client.tls_set(str(authority.certificate), *(str(file) if file else None for file in certificate))
    return one


def test_a_password_over_tls(
    paho: Client, server: MqttServer, authority: Authority, version: MQTTProtocolVersion
) -> None:
    one = trusting(paho(version, "one", user="sensor", password="secret"), authority)
    one.connect(port=server.ports["mqtts"])
    assert echoes(one)


def test_login_by_client_certificate(
    paho: Client, server: MqttServer, authority: Authority, version: MQTTProtocolVersion
) -> None:
    one = trusting(paho(version, "one", user=""), authority, "lamp")
    one.connect(port=server.ports["mqtts"])
    assert echoes(one)


def test_a_certificate_of_an_unknown_user_is_refused(paho: Client, server: MqttServer, authority: Authority) -> None:
    one = trusting(paho(V5, "one", user=""), authority, "stranger")
    with pytest.raises(Refused) as refused:
        one.connect(port=server.ports["mqtts"])
    assert refused.value.code == NOT_AUTHORIZED


def test_a_client_closes_the_connection_to_an_untrusted_server(
    paho: Client, server: MqttServer, tmp_path: Path
) -> None:
    one = trusting(paho(V5, "one"), Authority(tmp_path, "others"))
    with pytest.raises(ssl.SSLCertVerificationError):
        one.connect(port=server.ports["mqtts"])
