"""Passwords of shovels and federation upstreams in listings, exports, imports, plans and the audit record."""

import json
from typing import Any

import pytest

from tests.management.console import Console

URI, SHOWN = "amqp://u:opensesame@far/%2F", "amqp://u:***@far/%2F"
SHOVEL = {"src-uri": ["amqp://"], "src-queue": "a", "dest-uri": URI, "dest-queue": "b"}
SHOWN_SHOVEL = SHOVEL | {"dest-uri": SHOWN}
PATH = "/parameters/shovel/%2F/s"


@pytest.fixture
def shovelling(console: Console) -> Console:
    """Return a console whose broker has a shovel, an upstream and a global parameter, each with a password."""
    _know_components(console)
    console.put(PATH, {"value": SHOVEL})
    console.put("/parameters/federation-upstream/%2F/up", {"value": {"uri": URI}})
    console.put("/global-parameters/far", {"value": {"uris": [URI]}})
    return console


def _know_components(console: Console) -> None:
    console.gateway.broker.parameters.components |= dict.fromkeys(
        ("shovel", "federation-upstream"), lambda record: None
    )


def stored(console: Console) -> Any:
    return console.gateway.broker.parameters["/", "shovel", "s"].value


@pytest.mark.parametrize(
    "path",
    [
        *("/parameters", "/parameters/shovel", "/parameters/shovel/%2F", PATH),
        *("/parameters/federation-upstream", "/global-parameters", "/global-parameters/far"),
        *("/definitions", "/definitions/%2F", "/all-configuration"),
    ],
)
def test_passwords_are_shown_to_administrators_who_ask_for_them(shovelling: Console, path: str) -> None:
    text = shovelling.ask("GET", path).content.decode()
    assert SHOWN in text
    assert "opensesame" not in text
    assert URI in shovelling.ask("GET", f"{path}?secrets=true").content.decode()


def test_a_policymaker_cannot_ask_for_secrets(shovelling: Console) -> None:
    shovelling.put("/users/p", {"password": "p", "tags": "policymaker"})
    shovelling.put("/permissions/%2F/p", {"configure": "", "write": "", "read": ""})
    assert shovelling.ask("GET", PATH, user="p").json["value"] == SHOWN_SHOVEL
    refused = shovelling.ask("GET", f"{PATH}?secrets=true", user="p")
    assert (refused.status, refused.json["reason"]) == (401, "Not administrator user")


def test_a_setting_shows_secrets_as_rabbitmq_does(shovelling: Console) -> None:
    shovelling.context.shows_secrets = True
    assert shovelling.get(PATH)["value"] == SHOVEL
    assert URI in json.dumps(shovelling.get("/definitions"))


def test_a_shovel_that_was_read_can_be_written_back(shovelling: Console) -> None:
    shovelling.put(PATH, {"value": shovelling.get(PATH)["value"] | {"prefetch-count": 5}})
    assert stored(shovelling) == SHOVEL | {"prefetch-count": 5}


@pytest.mark.parametrize("uri", ["amqp://u:***@evil/%2F", "amqp://w:***@far/%2F"])
def test_a_stored_password_is_never_used_for_another_uri(shovelling: Console, uri: str) -> None:
    refused = shovelling.ask("PUT", PATH, {"value": SHOVEL | {"dest-uri": uri}})
    assert refused.status == 400
    assert f"shovel 's', dest-uri: the URI \"{uri}\" has *** instead of its password" in refused.json["reason"]
    assert stored(shovelling) == SHOVEL


@pytest.mark.parametrize("path", ["/definitions", "/definitions/%2F"])
def test_an_export_can_be_imported_again(shovelling: Console, path: str) -> None:
    exported = shovelling.get(path)
    shovelling.post(path, exported)
    assert stored(shovelling) == SHOVEL
    assert shovelling.gateway.broker.parameters["", "", "far"].value == {"uris": [URI]}


def test_another_broker_refuses_it_as_a_whole_by_name(shovelling: Console) -> None:
    other = Console()
    _know_components(other)
    refused = other.ask("POST", "/definitions", shovelling.get("/definitions"))
    assert refused.status == 400
    for subject in ("shovel 's', dest-uri", "federation-upstream 'up', uri", "global parameter 'far', uris"):
        assert f"{subject}: the URI" in refused.json["reason"]
    assert list(other.gateway.broker.parameters) == []


def test_another_broker_takes_an_export_with_secrets(shovelling: Console) -> None:
    other = Console()
    _know_components(other)
    other.post("/definitions", shovelling.get("/definitions?secrets=true"))
    assert stored(other) == SHOVEL


def test_a_plan_compares_what_is_stored(shovelling: Console) -> None:
    exported = shovelling.get("/definitions")
    assert shovelling.ask("POST", "/definitions-plan", exported).json["steps"] == []
    shovelling.delete(PATH)
    plan = shovelling.ask("POST", "/definitions-plan", exported).json
    assert [(step["action"], step["name"]) for step in plan["steps"]] == [("conflict", "shovel s")]
    assert "no password is stored for this URI" in plan["steps"][0]["reason"]
    assert shovelling.ask("POST", "/definitions-apply", exported).status == 409


def test_a_new_password_is_a_change_that_shows_neither(shovelling: Console) -> None:
    exported = shovelling.get("/definitions?secrets=true")
    text = json.dumps(exported).replace("opensesame", "changed")
    answer = shovelling.ask("POST", "/definitions-apply", json.loads(text))
    assert (answer.status, answer.json["change"]) == (200, 3)
    assert "opensesame" not in answer.content.decode()
    assert stored(shovelling)["dest-uri"] == "amqp://u:changed@far/%2F"


def test_the_audit_record_has_no_password_and_who_exported_them(shovelling: Console) -> None:
    shovelling.get("/definitions?secrets=true")
    record = shovelling.ask("GET", "/audit").content.decode()
    assert "opensesame" not in record
    newest = json.loads(record)["items"][0]
    assert (newest["action"], newest["details"]) == ("definitions.exported", {"secrets": True})
