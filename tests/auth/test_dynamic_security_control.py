"""``mosquitto_ctrl dynsec`` of Debian's Mosquitto, and paho, change the dynamic security of a gateway."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import management_client
from tests.auth.dynamic_security_file import ADMIN, PASSWORD, write_initial
from tests.auth.protected import mqtt, protected_gateway
from tests.interop.mqtt_clients.paho_client import V311, Paho, Refused
from tests.interop.tools import program, run
from tests.running import Gateway
from tests.waiting import wait_until

TOPIC = "$CONTROL/dynamic-security/v1"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_initial(tmp_path_factory.mktemp("dynamic") / "dynamic-security.json")


@pytest.fixture(scope="module")
def gateway(file: Path) -> Iterator[Gateway]:
    settings = {"dynamic_security_file": str(file), "anonymous_user": "stranger"}  # the file is read again after 5 s
    with protected_gateway(file.parent / "run", {"auth-mosquitto": settings, "auth-internal": {}}) as started:
        yield started


def ctl(gateway: Gateway, *words: str) -> str:
    """Run ``mosquitto_ctrl dynsec``; return what it prints, without its warnings."""
    host, port = gateway.addresses["mqtt"]
    login = ["-h", host, "-p", str(port), "-u", ADMIN, "-P", PASSWORD]
    done = run([program("mosquitto_ctrl"), *login, "dynsec", *words])
    lines = (done.stdout + done.stderr).decode().splitlines()
    warnings = ("Warning: You are running", "This means all of the configuration")
    return "\n".join(line for line in lines if line and not line.startswith(warnings))


def client(gateway: Gateway, user: str, password: str = "secret", client_id: str = "", **options: Any) -> Paho:
    found = Paho(mqtt(gateway), client_id=client_id or f"{user}'s", user=user, password=password, **options)
    found.connect()
    return found


def controlling(gateway: Gateway, **options: Any) -> Paho:
    """Return an administrator that has subscribed to the responses."""
    found = client(gateway, ADMIN, PASSWORD, **options)
    assert found.subscribe(f"{TOPIC}/response", qos=1) == [1]
    return found


def ask(admin: Paho, **command: Any) -> dict[str, Any]:
    assert admin.publish(TOPIC, json.dumps({"commands": [command]}).encode(), qos=1) is not None
    message = admin.next()
    assert message.topic == f"{TOPIC}/response"
    [response] = json.loads(message.payload)["responses"]
    assert isinstance(response, dict)
    return response


def test_mosquitto_ctrl_creates_a_client_with_a_role_and_a_group(gateway: Gateway, file: Path) -> None:
    for words in (
        "createClient anna -p secret", "createRole sensor", "addRoleACL sensor publishClientSend rooms/# allow 5",
        "createGroup sensors", "addGroupRole sensors sensor 2", "addGroupClient sensors anna 4",
    ):  # fmt: skip
        assert ctl(gateway, *words.split()) == ""
    shown = ctl(gateway, "getClient", "anna")
    assert "Username: anna" in shown
    assert "sensors (priority: 4)" in shown
    assert "publishClientSend    : allow : rooms/# (priority: 5)" in ctl(gateway, "getRole", "sensor")
    assert ctl(gateway, "listClients").split() == ["admin", "anna"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    anna = client(gateway, "anna")  # at once, although the file is read every 5 s
    assert anna.publish("rooms/one", b"20", qos=1) == 0x10
    assert anna.publish("halls/one", b"20", qos=1) == 0x87
    anna.disconnect()


def test_mosquitto_ctrl_reports_an_error_of_a_command(gateway: Gateway) -> None:
    assert "Client not found" in ctl(gateway, "getClient", "unknown")


def test_mosquitto_ctrl_sets_the_default_access(gateway: Gateway) -> None:
    assert ctl(gateway, "setDefaultACLAccess", "subscribe", "allow") == ""
    assert "subscribe            : allow" in ctl(gateway, "getDefaultACLAccess")
    assert ctl(gateway, "setDefaultACLAccess", "subscribe", "deny") == ""


def test_a_client_whose_password_changes_is_disconnected_and_needs_the_new_one(gateway: Gateway) -> None:
    ctl(gateway, "createClient", "bert", "-p", "secret")
    bert = client(gateway, "bert")
    assert ctl(gateway, "setClientPassword", "bert", "new secret") == ""
    assert bert.wait_for_the_end().value == 0x98  # administrative action
    with pytest.raises(Refused):
        client(gateway, "bert")
    client(gateway, "bert", "new secret").disconnect()
    assert "new secret" not in gateway.log


def test_a_disabled_or_deleted_client_is_disconnected_and_cannot_log_in(gateway: Gateway) -> None:
    for command, user in (("disableClient", "carl"), ("deleteClient", "cora")):
        ctl(gateway, "createClient", user, "-p", "secret")
        removed = client(gateway, user)
        assert ctl(gateway, command, user) == ""
        removed.wait_for_the_end()
        with pytest.raises(Refused):
            client(gateway, user)


def test_anonymous_clients_are_disconnected_when_their_group_changes(gateway: Gateway) -> None:
    ctl(gateway, "createGroup", "strangers")
    anonymous = Paho(mqtt(gateway), client_id="visitor", user="")
    anonymous.connect()
    assert ctl(gateway, "setAnonymousGroup", "strangers") == ""
    anonymous.wait_for_the_end()


def test_an_administrator_who_changes_its_own_password_gets_the_response_first(gateway: Gateway) -> None:
    admin = controlling(gateway)
    assert ask(admin, command="setClientPassword", username=ADMIN, password=PASSWORD) == {
        "command": "setClientPassword"
    }
    admin.wait_for_the_end()


@pytest.mark.parametrize("options", [{}, {"version": V311}], ids=["5.0", "3.1.1"])
def test_the_response_is_for_the_client_that_asked_alone(gateway: Gateway, options: dict[str, Any]) -> None:
    one, other = controlling(gateway, client_id="one", **options), controlling(gateway, client_id="other", **options)
    for number in range(5):
        assert ask(one, command="getRole", rolename="none", correlationData=f"one {number}")["correlationData"][:3] == (
            "one"
        )
        assert ask(other, command="listRoles", correlationData="other")["correlationData"] == "other"
    for each in (one, other):
        each.disconnect()


def test_commands_of_one_message_are_performed_in_order(gateway: Gateway) -> None:
    admin = controlling(gateway)
    commands = [{"command": "createRole", "rolename": "r"}, {"command": "createRole", "rolename": "r"}, 7]
    admin.publish(TOPIC, json.dumps({"commands": commands}).encode(), qos=1)
    assert json.loads(admin.next().payload)["responses"] == [
        {"command": "createRole"},
        {"command": "createRole", "error": "Role already exists"},
        {"command": "Unknown command", "error": "Command not an object"},
    ]
    admin.disconnect()


def test_many_messages_are_answered_in_order(gateway: Gateway) -> None:
    admin = controlling(gateway)
    numbers = [str(number) for number in range(60)]
    for number in numbers:
        commands = [{"command": "listRoles", "correlationData": number}]
        admin.start_publish(TOPIC, json.dumps({"commands": commands}), qos=1)
    answered = [json.loads(body)["responses"][0]["correlationData"] for body in admin.payloads(60)]
    assert answered == numbers
    admin.disconnect()


def test_commands_are_neither_routed_nor_retained(gateway: Gateway) -> None:
    admin = controlling(gateway)
    assert admin.subscribe(TOPIC, qos=1) == [1]
    secret = {"command": "createClient", "username": "dora", "password": "secret"}
    admin.publish(TOPIC, json.dumps({"commands": [secret]}).encode(), qos=1, retain=True)
    assert json.loads(admin.next().payload) == {"responses": [{"command": "createClient"}]}
    ask(admin, command="listRoles")  # nothing else came before
    admin.disconnect()
    assert management_client.get(gateway, "mqtt/retained/%2F") == []


def test_clients_whose_roles_do_not_permit_it_are_refused(gateway: Gateway) -> None:
    ctl(gateway, "createClient", "emil", "-p", "secret")
    emil = client(gateway, "emil")
    assert emil.subscribe(f"{TOPIC}/response", qos=1) == [0x87]
    assert emil.publish(TOPIC, b'{"commands": []}', qos=1) == 0x87
    emil.disconnect()
    with_default = controlling(gateway)
    ask(with_default, command="setDefaultACLAccess", acls=[{"acltype": "publishClientSend", "allow": True}])
    emil = client(gateway, "emil")
    assert emil.publish(TOPIC, b'{"commands": []}', qos=1) == 0x87  # the default access does not suffice
    ask(with_default, command="setDefaultACLAccess", acls=[{"acltype": "publishClientSend", "allow": False}])
    for each in (emil, with_default):
        each.disconnect()


def test_a_user_of_the_broker_is_no_administrator_of_the_file_even_with_the_same_name(gateway: Gateway) -> None:
    management_client.put(gateway, "users/admin", {"password": "of the broker", "tags": "administrator"})
    management_client.put(gateway, "permissions/%2F/admin", {"configure": ".*", "write": ".*", "read": ".*"})
    other = client(gateway, ADMIN, "of the broker")
    assert other.publish(TOPIC, b'{"commands": []}', qos=1) == 0x87
    other.disconnect()


def test_a_file_that_cannot_be_changed_fails_the_command_and_keeps_the_rules(gateway: Gateway, file: Path) -> None:
    admin, before = controlling(gateway), file.read_text()
    file.write_text("{")
    try:
        assert ask(admin, command="createRole", rolename="lost")["error"] == (
            "The dynamic security file cannot be changed"
        )
        assert "not valid JSON" in gateway.log_has("dynamic security file not changed")
    finally:
        file.write_text(before)
    wait_until(lambda: "error" not in ask(admin, command="listRoles"), "the file is not read again")
    admin.disconnect()
