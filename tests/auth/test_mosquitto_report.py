"""Mosquitto's dynamic security for operators: resources, verbs and panels, without passwords."""

import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_auth.mosquitto.dynamic_security import parse_dynamic_security
from gateway_auth.mosquitto.report import DynamicSecurityReport
from tests import management_client
from tests.auth.protected import protected_gateway
from tests.auth.test_mosquitto_rules import secured
from tests.running import Gateway
from tests.waiting import wait_until

RESOURCES = "plugins/%2F/auth-mosquitto/resources/"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("dynamic") / "dynamic-security.json"
    file.write_text(
        secured(clients=[{"username": "anna", "password": "c2VjcmV0", "salt": "c2FsdA==", "iterations": 101}])
    )
    return file


@pytest.fixture(scope="module")
def gateway(file: Path) -> Iterator[Gateway]:
    settings = {"dynamic_security_file": str(file), "reload_s": 0.1}
    with protected_gateway(file.parent, {"auth-mosquitto": settings, "auth-internal": {}}) as started:
        yield started


def listed(gateway: Gateway, path: str) -> Any:
    return management_client.get(gateway, RESOURCES + path)


def test_administrators_see_the_clients_in_use_without_their_passwords(gateway: Gateway, file: Path) -> None:
    [anna] = listed(gateway, "clients")
    assert anna == {
        "username": "anna", "clientid": "", "disabled": False, "has_password": True, "roles": [], "groups": [],
    }  # fmt: skip
    file.write_text(secured())
    wait_until(lambda: len(listed(gateway, "clients")) == 3, "the changed file is not shown")


def test_a_role_shows_its_rules_and_an_unknown_one_is_not_found(gateway: Gateway) -> None:
    topics = [rule["topic"] for rule in listed(gateway, "roles/own")]
    assert topics == ["a/b", "a/#", "#"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        listed(gateway, "roles/unknown")
    assert refused.value.code == 404
    assert "role 'unknown' is not in the dynamic security file" in refused.value.read().decode()


def test_others_than_administrators_see_nothing(gateway: Gateway) -> None:
    management_client.put(gateway, "users/mona", {"password": "mona", "tags": "monitoring"})
    management_client.put(gateway, "permissions/%2F/mona", {"configure": ".*", "write": ".*", "read": ".*"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        management_client.request(gateway, "GET", RESOURCES + "clients", login="mona:mona")
    assert refused.value.code == 401


def test_gatewayctl_and_the_web_ui_offer_the_tables(gateway: Gateway) -> None:
    verbs = {verb["name"] for verb in management_client.get(gateway, "ctl-verbs/%2F")}
    assert verbs == {"clients", "groups", "roles", "role", "default_access"}
    titles = {panel["title"] for panel in management_client.get(gateway, "ui-panels")}
    assert titles == {"Dynamic security: clients", "Dynamic security: groups"}


def test_groups_have_roles_members_and_the_mark_of_anonymous_clients() -> None:
    rules = parse_dynamic_security(secured(anonymousGroup="staff"))
    rows = [row for row in DynamicSecurityReport(lambda: rules).groups(None) if row]  # type: ignore[arg-type]  # unused
    assert rows == [{"groupname": "staff", "roles": ["open"], "clients": ["anna"], "anonymous": True}]


def test_names_are_in_the_order_in_which_they_decide() -> None:
    roles = [{"rolename": "late"}, {"rolename": "early", "priority": 5}]
    rules = parse_dynamic_security(json.dumps({"clients": [{"username": "anna", "roles": roles}]}))
    [row] = DynamicSecurityReport(lambda: rules).clients(None)  # type: ignore[arg-type]  # unused
    assert row["roles"] == ["early", "late"]


def test_a_plugin_with_a_password_file_offers_no_resources(tmp_path: Path) -> None:
    settings = {"anonymous_user": "stranger"}
    with protected_gateway(tmp_path, {"auth-mosquitto": settings, "auth-internal": {}}) as gateway:
        assert management_client.get(gateway, "ctl-verbs/%2F") == []
        assert management_client.get(gateway, "ui-panels") == []
