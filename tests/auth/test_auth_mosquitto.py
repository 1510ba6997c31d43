"""``auth-mosquitto`` with files of the real mosquitto_passwd's format, and paho as the client."""

from collections.abc import Iterator
from pathlib import Path

import pika.exceptions
import pytest

from tests.auth.protected import amqp, mqtt, protected_gateway
from tests.auth.test_mosquitto_rules import ACL, PASSWORDS
from tests.interop.mqtt_clients.paho_client import Paho, Refused
from tests.running import Gateway
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("mosquitto")
    (directory / "passwords").write_text(PASSWORDS)
    (directory / "acl").write_text(ACL)
    return directory


@pytest.fixture(scope="module")
def gateway(files: Path) -> Iterator[Gateway]:
    settings = {
        "password_file": str(files / "passwords"),
        "acl_file": str(files / "acl"),
        "anonymous_user": "stranger",
        "reload_s": 0.1,
    }
    with protected_gateway(files / "run", {"auth-mosquitto": settings}) as started:
        yield started


def client(gateway: Gateway, user: str, password: str = "secret", client_id: str = "lamp") -> Paho:
    found = Paho(mqtt(gateway), client_id=client_id, user=user, password=password)
    found.connect()
    return found


@pytest.mark.parametrize("user", ["anna", "bert"])
def test_users_of_the_password_file_log_in(gateway: Gateway, user: str) -> None:
    client(gateway, user).disconnect()


@pytest.mark.parametrize(("user", "password"), [("anna", "wrong"), ("zoe", "secret")])
def test_other_logins_are_refused(gateway: Gateway, user: str, password: str) -> None:
    with pytest.raises(Refused) as refused:
        client(gateway, user, password)
    assert refused.value.code == 0x86


def test_the_acl_file_decides_on_topics(gateway: Gateway) -> None:
    anna = client(gateway, "anna")
    assert anna.subscribe("rooms/one", "devices/lamp/#", qos=1) == [1, 1]
    assert anna.subscribe("rooms/secret", "devices/other/#", qos=1) == [0x87, 0x87]
    assert anna.publish("rooms/one", b"20", qos=1) is not None
    assert anna.next().payload == b"20"
    anna.disconnect()


def test_an_anonymous_client_is_the_named_user(gateway: Gateway) -> None:
    anonymous = client(gateway, "", client_id="visitor")
    assert anonymous.subscribe("public/#", qos=1) == [1]
    assert anonymous.subscribe("rooms/one", qos=1) == [0x87]
    assert gateway.log_has("user=stranger vhost=/")
    anonymous.disconnect()


def test_other_protocols_need_another_plugin(gateway: Gateway) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        amqp(gateway, "anna", "secret")


def test_a_changed_acl_file_applies_to_open_connections(gateway: Gateway, files: Path) -> None:
    anna = client(gateway, "anna", client_id="changing")
    assert anna.subscribe("new/topic", qos=1) == [0x87]
    (files / "acl").write_text(ACL + "\nuser anna\ntopic new/topic\n")
    wait_until(lambda: anna.subscribe("new/topic", qos=1) == [1], "the new rules do not apply")
    (files / "acl").write_text("nonsense\n")
    assert "line 1" in gateway.log_has("file not read again")
    assert anna.subscribe("new/topic", qos=1) == [1]
    anna.disconnect()


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    settings = {"password_file": str(tmp_path / "missing")}
    with protected_gateway(tmp_path, {"auth-mosquitto": settings}) as gateway:
        assert "missing" in gateway.log_has("plugin inert")
