"""Virtual hosts, users, permissions, limits and parameters over HTTP.

Rules: R152.
"""

from typing import Any

import pytest

from gateway.access.passwords import verify_password
from gateway.access.scram import ScramCredential, scram_credential
from tests.management.console import Console

MISSING = (404, {"error": "Object Not Found", "reason": "Not Found"})


def bad_request(reason: object) -> tuple[int, Any]:
    return 400, {"error": "bad_request", "reason": reason}


# Virtual hosts


def test_the_creator_of_a_virtual_host_gets_all_permissions(console: Console) -> None:
    assert console.put("/vhosts/shop", {"description": "one", "tags": "a,b"}) == 201
    assert console.put("/vhosts/shop", {}) == 204
    shop = console.get("/vhosts/shop")
    assert (shop["description"], shop["tags"], shop["tracing"]) == ("one", ["a", "b"], False)
    assert shop["cluster_state"] == {"gateway@here": "running"}
    assert console.get("/vhosts/shop/permissions") == [
        {"user": "guest", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"}
    ]
    console.delete("/vhosts/shop")
    assert console.ask("GET", "/vhosts/shop").result == MISSING


def test_metadata_and_tracing_of_a_virtual_host_are_updated(console: Console) -> None:
    console.put("/vhosts/%2F", {"description": "all", "tracing": True})
    assert (console.get("/vhosts/%2F")["description"], console.get("/vhosts/%2F")["tracing"]) == ("all", True)
    assert console.gateway.vhost.tracing is not None
    assert console.ask("PUT", "/vhosts/%2F", {"tracing": "x"}).result == bad_request(["not_boolean", "x"])


# Users


def test_a_user_is_created_with_a_password_or_a_hash(console: Console) -> None:
    assert console.put("/users/u", {"password": "secret", "tags": "management, x"}) == 201
    user = console.get("/users/u")
    assert user["tags"] == ["management", "x"]
    assert verify_password("secret", user["password_hash"], user["hashing_algorithm"])
    assert console.put("/users/u", {"password_hash": user["password_hash"], "tags": ["monitoring"]}) == 204
    assert console.get("/users/u") == user | {"tags": ["monitoring"]}


def test_the_scram_credential_is_kept_until_the_password_changes(console: Console) -> None:
    """An update of tags contains the hash and must not delete the SCRAM credential."""
    user_by_name = console.gateway.broker.directory.user_by_name
    console.put("/users/u", {"password": "secret", "tags": ""})
    written = user_by_name["u"].scram_sha_256
    credential = ScramCredential.parse(written)
    assert scram_credential("secret", credential.salt) == credential
    shown = console.get("/users/u")
    assert "scram_sha_256" not in shown
    console.put("/users/u", {"password_hash": shown["password_hash"], "tags": "monitoring"})
    console.put("/user-limits/u/max-channels", {"value": 7})
    assert user_by_name["u"].scram_sha_256 == written
    console.put("/users/u", {"password": "secret", "tags": ""})
    assert user_by_name["u"].scram_sha_256 != written
    console.put("/users/u", {"password_hash": shown["password_hash"], "tags": ""})
    assert user_by_name["u"].scram_sha_256 == ""


def test_a_hash_computed_by_the_api_can_be_used(console: Console) -> None:
    assert console.ask("GET", "/auth/hash_password/u", user=None).status == 401
    hashed = console.get("/auth/hash_password/u")["ok"]
    console.put("/users/u", {"password_hash": hashed, "tags": "management"})
    assert console.get("/whoami", user="u") == {"name": "u", "tags": ["management"]}


USERS = [
    ({}, bad_request("tags_not_present")),
    ({"password": "x"}, bad_request("tags_not_present")),
    ({"password": "x", "password_hash": "y", "tags": ""}, bad_request("both_password_and_password_hash_are_provided")),
    ({"password_hash": "!!", "tags": ""}, bad_request(["not_base64", "!!"])),
    ({"password": "x", "tags": 5}, bad_request(["not_tags", 5])),
    ({"tags": "x"}, (201, None)),
    ({"password": "", "tags": ""}, (201, None)),
]


@pytest.mark.parametrize(("fields", "expected"), USERS)
def test_an_invalid_user_is_refused(console: Console, fields: object, expected: object) -> None:
    assert console.ask("PUT", "/users/u", fields).result == expected


def test_a_user_keeps_its_limits_with_a_new_password(console: Console) -> None:
    console.put("/users/u", {"password": "a", "tags": ""})
    console.put("/user-limits/u/max-channels", {"value": 5})
    console.put("/users/u", {"password": "b", "tags": ""})
    assert console.get("/users/u")["limits"] == {"max-channels": 5}


def test_users_are_deleted_singly_or_in_bulk(console: Console) -> None:
    for name in ("a", "b", "c"):
        console.put(f"/users/{name}", {"tags": ""})
    assert [user["name"] for user in console.get("/users/without-permissions")] == ["a", "b", "c"]
    console.delete("/users/a")
    assert console.ask("POST", "/users/bulk-delete", {"users": ["b", "none"]}).result == bad_request(
        ["no_such_user", "none"]
    )
    console.post("/users/bulk-delete", {"users": ["b", "c"]})
    assert [user["name"] for user in console.get("/users")] == ["guest"]
    assert console.ask("POST", "/users/bulk-delete", {}).result == bad_request("[{key_missing,users}]")


# Permissions


def test_permissions_are_set_and_deleted(console: Console) -> None:
    console.put("/users/u", {"tags": ""})
    fields = {"configure": "^u", "write": "", "read": ".*"}
    assert console.put("/permissions/%2F/u", fields) == 201
    assert console.put("/permissions/%2F/u", fields) == 204
    assert console.get("/permissions/%2F/u") == {"user": "u", "vhost": "/", **fields}
    assert console.get("/users/u/permissions") == [{"user": "u", "vhost": "/", **fields}]
    console.delete("/permissions/%2F/u")
    assert console.ask("GET", "/permissions/%2F/u").result == MISSING


def test_topic_permissions_are_set_and_deleted(console: Console) -> None:
    for exchange, status in (("amq.topic", 201), ("other", 204)):  # 204 once the user has one, as in RabbitMQ
        fields = {"exchange": exchange, "write": "^a", "read": "^b"}
        assert console.put("/topic-permissions/%2F/guest", fields) == status
    assert [each["exchange"] for each in console.get("/topic-permissions/%2F/guest")] == ["amq.topic", "other"]
    assert console.get("/users/guest/topic-permissions") == console.get("/vhosts/%2F/topic-permissions")
    console.delete("/topic-permissions/%2F/guest/other")
    assert len(console.get("/topic-permissions")) == 1
    console.delete("/topic-permissions/%2F/guest")
    assert console.ask("GET", "/topic-permissions/%2F/guest").result == MISSING


PERMISSIONS = [
    ("/permissions/%2F/guest", {"configure": ""}, bad_request("[{key_missing,write},{key_missing,read}]")),
    ("/permissions/%2F/none", {"configure": "", "write": "", "read": ""}, bad_request("vhost_or_user_not_found")),
    ("/permissions/none/guest", {"configure": "", "write": "", "read": ""}, bad_request("vhost_or_user_not_found")),
    ("/topic-permissions/%2F/guest", {"exchange": "a"}, bad_request("[{key_missing,write},{key_missing,read}]")),
]


@pytest.mark.parametrize(("path", "fields", "expected"), PERMISSIONS)
def test_invalid_permissions_are_refused(console: Console, path: str, fields: object, expected: object) -> None:
    assert console.ask("PUT", path, fields).result == expected


def test_an_invalid_pattern_is_refused(console: Console) -> None:
    answer = console.ask("PUT", "/permissions/%2F/guest", {"configure": "([", "write": "", "read": ""})
    assert answer.status == 400
    assert "([" in answer.json["reason"]


# Limits


def test_limits_of_a_virtual_host_are_set_and_deleted(console: Console) -> None:
    console.put("/vhost-limits/%2F/max-queues", {"value": 1})
    console.put("/vhost-limits/%2F/max-connections", {"value": 2})
    both = {"max-queues": 1, "max-connections": 2}
    assert console.get("/vhost-limits") == console.get("/vhost-limits/%2F") == [{"vhost": "/", "value": both}]
    assert console.get("/parameters/vhost-limits/%2F/limits")["value"] == both
    console.put("/queues/%2F/q1", {})
    assert console.ask("PUT", "/queues/%2F/q2", {}).result == bad_request(
        "cannot declare queue 'q2': queue limit in vhost '/' (1) is reached"
    )
    console.delete("/vhost-limits/%2F/max-queues")
    console.put("/queues/%2F/q2", {})
    assert console.get("/vhost-limits/%2F") == [{"vhost": "/", "value": {"max-connections": 2}}]


LIMITS = [
    ("/vhost-limits/%2F/zz", 5, bad_request('Validation failed\n\nUnrecognised terms [{<<"zz">>,5}] in limits\n')),
    ("/vhost-limits/%2F/max-queues", "x",
     bad_request('Validation failed\n\nmax-queues should be a number, actually was <<"x">>\n')),
    ("/vhost-limits/%2F/max-queues", -1, (204, None)),
    ("/vhost-limits/none/max-queues", 1, (404, {"error": "not_found", "reason": "vhost_not_found"})),
    ("/user-limits/guest/zz", 1, bad_request('Unrecognised terms [{<<"zz">>,1}] in user-limits')),
    ("/user-limits/guest/max-channels", "x", bad_request('max-channels should be a number, actually was <<"x">>')),
    ("/user-limits/none/max-channels", 1, bad_request(["no_such_user", "none"])),
    ("/user-limits/guest/max-channels", -1, (204, None)),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "expected"), LIMITS)
def test_an_invalid_limit_is_refused(console: Console, path: str, value: object, expected: object) -> None:
    assert console.ask("PUT", path, {"value": value}).result == expected


# Parameters


@pytest.mark.parametrize("component", ["shovel", "federation-upstream", "federation-upstream-set", "nope"])
def test_a_parameter_of_an_unknown_component_is_refused(console: Console, component: str) -> None:
    expected = console.ask("PUT", f"/parameters/{component}/%2F/s", {"value": {"src-uri": "amqp://"}}).result
    assert expected == bad_request(f"Validation failed\n\ncomponent {component} not found\n")
    assert console.get("/parameters") == []


def test_an_imported_parameter_without_effect_is_marked_and_can_be_deleted(console: Console) -> None:
    shovel = {"component": "shovel", "vhost": "/", "name": "s", "value": {"src-uri": "amqp://"}}
    console.post("/definitions", {"parameters": [shovel]})
    marked = shovel | {"without_effect": "component shovel not found"}
    assert console.get("/parameters") == console.get("/parameters/shovel/%2F") == [marked]
    assert console.get("/definitions")["parameters"] == [shovel]
    console.delete("/parameters/shovel/%2F/s")
    assert console.ask("GET", "/parameters/shovel/%2F/s").result == MISSING


def test_a_policy_with_keys_without_effect_is_marked(console: Console) -> None:
    definition = {"federation-upstream-set": "all", "ha-mode": "all", "max-length": 1}
    console.put("/policies/%2F/p", {"pattern": "^f", "definition": definition})
    assert console.get("/policies/%2F/p")["without_effect"] == "no effect: ha-mode"
    assert console.get("/policies")[0]["definition"] == definition


def test_an_operator_policy_of_mirrored_queues_is_marked_imported_and_exported(console: Console) -> None:
    rule = {"pattern": "^q", "definition": {"ha-mode": "exactly", "ha-params": 2, "ha-sync-mode": "automatic"}}
    unheeded = "no effect: ha-mode, ha-params, ha-sync-mode"
    assert console.put("/operator-policies/%2F/o", rule) == 201
    assert console.get("/operator-policies/%2F/o")["without_effect"] == unheeded
    exported = console.get("/definitions")
    console.delete("/operator-policies/%2F/o")
    console.post("/definitions", exported)
    (found,) = console.get("/operator-policies")
    assert (found["definition"], found["without_effect"]) == (rule["definition"], unheeded)
    assert console.get("/definitions")["parameters"] == exported["parameters"]


def test_global_parameters_are_set_and_deleted(console: Console) -> None:
    assert console.put("/global-parameters/g", {"value": [1]}) == 201
    assert console.get("/global-parameters/g") == {"name": "g", "value": [1]}
    assert console.get("/cluster-name") == {"name": "gateway@here"}
    console.put("/cluster-name", {"name": "warehouse"})
    assert console.get("/cluster-name") == {"name": "warehouse"}
    assert [each["name"] for each in console.get("/global-parameters")] == ["cluster_name", "g"]
    console.delete("/global-parameters/g")
    assert console.ask("DELETE", "/global-parameters/g").result == MISSING


def test_all_feature_flags_are_enabled(console: Console) -> None:
    flags = console.get("/feature-flags")
    assert {flag["state"] for flag in flags} == {"enabled"}
    assert console.ask("PUT", f"/feature-flags/{flags[0]['name']}/enable", {}).status == 204
    unsupported = {"error": "bad_request", "reason": "unsupported"}
    assert console.ask("PUT", "/feature-flags/none/enable", {}).result == (400, unsupported)
