"""The commands of Mosquitto's dynamic security, without a broker."""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

import pytest

from gateway_auth.mosquitto.control.commands import CommandBatch, parse_batch
from gateway_auth.mosquitto.control.document import Document
from gateway_auth.mosquitto.control.edits import edit_file
from gateway_auth.mosquitto.dynamic_security import parse_dynamic_security
from tests.auth.dynamic_security_file import initial, perform, write_initial

#: Commands in order, each with data and error of the response of Mosquitto 2.0.11.
OF_MOSQUITTO: Final = json.loads((Path(__file__).parent / "fixtures" / "mosquitto-2.0.11-dynsec.json").read_text())


@pytest.fixture
def document() -> Document:
    document = Document(initial())
    perform(
        document,
        {"command": "createRole", "rolename": "reader"},
        {"command": "createRole", "rolename": "writer"},
        {"command": "createGroup", "groupname": "staff", "roles": [{"rolename": "reader"}]},
        {"command": "createClient", "username": "anna", "password": "a", "groups": [{"groupname": "staff"}]},
        {"command": "createClient", "username": "bert", "password": "b", "roles": [{"rolename": "writer"}]},
    )
    document.users.clear()
    document.is_changed = False
    return document


def test_the_responses_are_those_of_mosquitto() -> None:
    document = Document(initial())
    for command, expected in OF_MOSQUITTO:
        [response] = perform(document, command)
        assert {key: response[key] for key in ("data", "error") if key in response} == expected, command


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ({"command": "createRole", "rolename": ""}, "Invalid/missing rolename"),
        ({"command": "createRole", "rolename": "r", "acls": [{"acltype": "x", "topic": "a"}]}, "Unknown acltype"),
        (
            {"command": "createRole", "rolename": "r", "acls": [{"acltype": "subscribeLiteral", "topic": "a/#/b"}]},
            "Invalid ACL topic",
        ),
        ({"command": "createRole", "rolename": "r", "acls": [7]}, "Invalid/missing acls"),
        ({"command": "createClient", "username": "c", "password": ""}, "Empty password is not allowed"),
        ({"command": "createClient", "username": "a\0b"}, "Username not valid UTF-8"),
        ({"command": "createClient", "username": "\ud800"}, "Username not valid UTF-8"),
        ({"command": "createClient", "username": "x" * 65536}, "Username not valid UTF-8"),
        ({"command": "modifyClient", "username": "anna", "groups": [{"groupname": "no"}]}, "Group not found"),
        ({"command": "modifyGroup", "groupname": "staff", "clients": [{"username": "no"}]}, "Client not found"),
        ({"command": "addClientRole", "username": "bert", "rolename": "writer"}, "Client is already in this role"),
        ({"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe"}]}, "Invalid/missing allow"),
        ({"command": "setDefaultACLAccess", "acls": [{"acltype": "x", "allow": True}]}, "Unknown acltype"),
    ],
)
def test_what_mosquitto_accepts_without_effect_is_refused_and_changes_nothing(
    document: Document, command: dict[str, Any], error: str
) -> None:
    before = document.text()
    [response] = perform(document, command)
    assert response == {"command": command["command"], "error": error}
    assert (document.text(), document.is_changed) == (before, False)


@pytest.mark.parametrize(
    ("command", "users"),
    [
        ({"command": "setClientPassword", "username": "anna", "password": "x"}, {"anna"}),
        ({"command": "setClientId", "username": "anna", "clientid": "x"}, {"anna"}),
        ({"command": "modifyClient", "username": "anna", "textname": "x"}, {"anna"}),
        ({"command": "addClientRole", "username": "anna", "rolename": "writer"}, {"anna"}),
        ({"command": "removeClientRole", "username": "bert", "rolename": "writer"}, {"bert"}),
        ({"command": "disableClient", "username": "anna"}, {"anna"}),
        ({"command": "deleteClient", "username": "anna"}, {"anna"}),
        ({"command": "addGroupClient", "groupname": "staff", "username": "bert"}, {"bert"}),
        ({"command": "removeGroupClient", "groupname": "staff", "username": "anna"}, {"anna"}),
        ({"command": "addGroupRole", "groupname": "staff", "rolename": "writer"}, {"anna"}),
        ({"command": "removeGroupRole", "groupname": "staff", "rolename": "reader"}, {"anna"}),
        ({"command": "modifyGroup", "groupname": "staff", "clients": [{"username": "bert"}]}, {"anna", "bert"}),
        ({"command": "deleteGroup", "groupname": "staff"}, {"anna"}),
        ({"command": "deleteRole", "rolename": "reader"}, {"anna"}),
        ({"command": "modifyRole", "rolename": "writer", "acls": []}, {"bert"}),
        (
            {"command": "addRoleACL", "rolename": "reader", "acltype": "subscribeLiteral", "topic": "a", "allow": True},
            {"anna"},
        ),
        ({"command": "setAnonymousGroup", "groupname": "staff"}, {""}),
        ({"command": "modifyRole", "rolename": "writer", "textname": "x"}, set()),
        ({"command": "enableClient", "username": "anna"}, set()),
        ({"command": "createClient", "username": "c"}, set()),
        ({"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe", "allow": True}]}, set()),
    ],
    ids=lambda value: str(value.get("command")) if isinstance(value, dict) else "",
)
def test_the_clients_whose_access_changes_must_connect_again(
    document: Document, command: dict[str, Any], users: set[str]
) -> None:
    assert perform(document, command) == [{"command": command["command"]}]
    assert (document.users, document.is_changed) == (users, True)


def test_a_password_is_hashed_as_mosquitto_does(document: Document) -> None:
    perform(document, {"command": "setClientPassword", "username": "anna", "password": "päss"})
    client = parse_dynamic_security(document.text()).client("anna", "any")
    assert client is not None
    found = client.password_hash()
    assert found is not None
    assert (found.rounds, len(found.salt)) == (101, 12)
    assert found.verify("päss")
    assert not found.verify("a")


def test_mosquitto_ctrl_names_the_default_access_by_a_word(document: Document) -> None:
    command = {"command": "setDefaultACLAccess", "acls": [{"acltype": "subscribe", "access": "allow"}]}
    assert perform(document, command) == [{"command": "setDefaultACLAccess"}]
    assert document.default_access["subscribe"] is True


def test_the_groups_of_a_client_in_a_file_of_another_origin_are_moved_to_the_groups() -> None:
    content = {
        "clients": [{"username": "anna", "groups": [{"groupname": "staff", "priority": 3}, {"groupname": "none"}]}],
        "groups": [{"groupname": "staff"}],
        "acme": {"kept": True},
    }
    document = Document(content)
    assert perform(document, {"command": "getClient", "username": "anna"})[0]["data"]["client"]["groups"] == [
        {"groupname": "staff", "priority": 3}
    ]
    written = json.loads(document.text())
    assert written["groups"] == [{"groupname": "staff", "clients": [{"username": "anna", "priority": 3}]}]
    assert written["acme"] == {"kept": True}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"nonsense", "Payload not valid JSON"),
        (b"\xff\xfe", "Payload not valid JSON"),
        (b"[" * 100_000, "Payload not valid JSON"),
        (b"{}", "Invalid/missing commands"),
        (b"[]", "Invalid/missing commands"),
        (b'{"commands": 5}', "Invalid/missing commands"),
        (b'{"commands": [7]}', "Command not an object"),
        (b'{"commands": [{}]}', "Missing command"),
    ],
)
def test_a_message_without_commands_is_answered_with_the_reason(tmp_path: Path, body: bytes, error: str) -> None:
    edit = edit_file(str(write_initial(tmp_path / "file.json")), parse_batch(body))
    assert edit.responses == [{"command": "Unknown command", "error": error}]
    assert edit.content is None


CREATE: Final = CommandBatch([{"command": "createClient", "username": "c", "correlationData": "1"}])


def test_the_file_is_replaced_as_a_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    real = write_initial(tmp_path / "real.json")
    real.chmod(0o644)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    former = real.stat().st_ino
    edit = edit_file(str(link), CREATE)
    assert edit.responses == [{"command": "createClient", "correlationData": "1"}]
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert real.stat().st_ino != former
    assert sorted(os.listdir(tmp_path)) == ["link.json", "real.json"]
    assert parse_dynamic_security(real.read_text()) == edit.content


def test_what_others_wrote_to_the_file_is_kept(tmp_path: Path) -> None:
    file = write_initial(tmp_path / "file.json")
    edit_file(str(file), CREATE)
    content = json.loads(file.read_text())
    content["clients"].append({"username": "by hand"})
    file.write_text(json.dumps(content))
    edit_file(str(file), CommandBatch([{"command": "deleteClient", "username": "c"}]))
    assert [client["username"] for client in json.loads(file.read_text())["clients"]] == ["admin", "by hand"]


@pytest.mark.parametrize("content", [None, "{", '{"clients": [{}]}', '{"clients": [7]}'])
def test_a_file_that_cannot_be_changed_is_named_in_the_log_and_the_command_fails(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "file.json"
    if content is not None:
        file.write_text(content)
    edit = edit_file(str(file), CREATE)
    [response] = edit.responses
    assert response == {
        "command": "createClient", "correlationData": "1", "error": "The dynamic security file cannot be changed",
    }  # fmt: skip
    assert edit.failure
    assert edit.content is None


def test_a_draft_that_cannot_be_written_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_initial(tmp_path / "file.json")
    before = file.read_text()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert "No space left" in edit_file(str(file), CREATE).failure
    assert (os.listdir(tmp_path), file.read_text()) == (["file.json"], before)
