"""Mosquitto's password files, ACL files and dynamic security, without a broker."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.acl_file import parse_acl_file
from gateway_auth.mosquitto.dynamic_security import parse_dynamic_security
from gateway_auth.mosquitto.password_file import parse_password_file
from gateway_auth.mosquitto.rules import MqttClient
from gateway_auth.mosquitto.topics import covers, levels_of, levels_of_key, overlaps
from gateway_auth.mosquitto.watched_file import WatchedFile

ANNA = MqttClient("anna", "lamp")
ANONYMOUS = MqttClient("", "lamp")

#: Written by mosquitto_passwd 2.0.11; the password is "secret".
PASSWORDS = """# a comment
anna:$7$101$nQ4hz6Q1SCZcQ3d3$xJFRtMnCgOw1AHyFAiN0va9asFxjikX6UYXJa8+EMM5FxfKU8KNuPFo4CjTsVymNWqLXfQb1yQ/QcM1bHtW9rg==
bert:$6$K3lq2Q5NEht+fn47$DjrD8Ze2fZqBoDZ9rY9woEWWc3fxMFNfnoBN1yPUBeF3KgiF5206RQg5zN+Ckyg1DZLyaBPoN2VjwNF8NwHMcQ==
"""

ACL = """
topic read public/#

user anna
topic rooms/+
topic write orders
topic deny rooms/secret
topic read $SYS/#

# for all
pattern readwrite devices/%c/#
pattern read users/%u
"""


@pytest.mark.parametrize("user", ["anna", "bert"])
def test_the_hashes_of_mosquitto_are_verified(user: str) -> None:
    found = parse_password_file(PASSWORDS)[user]
    assert found.verify("secret")
    assert not found.verify("Secret")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("anna", "line 1: expected NAME:HASH"),
        ("\nanna:secret", "line 2: the password is not hashed by mosquitto_passwd"),
        ("anna:$7$0$YWJj$YWJj", "line 1: a hash must have 1 to"),
        ("anna:$6$!$YWJj", "line 1: "),
    ],
)
def test_an_invalid_password_file_is_refused_with_the_line(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        parse_password_file(text)


@pytest.mark.parametrize(
    ("client", "may", "topic", "permitted"),
    [
        (ANNA, "publish", "rooms/one", True),
        (ANNA, "publish", "rooms/secret", False),
        (ANNA, "publish", "orders", True),
        (ANNA, "subscribe", "orders", False),
        (ANNA, "subscribe", "rooms/one", True),
        (ANNA, "subscribe", "rooms/+", False),
        (ANNA, "subscribe", "public/a", False),
        (ANNA, "subscribe", "$SYS/#", True),
        (ANNA, "publish", "devices/lamp/state", True),
        (ANNA, "publish", "devices/other/state", False),
        (ANNA, "subscribe", "users/anna", True),
        (ANNA, "publish", "users/anna", False),
        (ANONYMOUS, "subscribe", "public/#", True),
        (ANONYMOUS, "subscribe", "public", True),
        (ANONYMOUS, "subscribe", "#", False),
        (ANONYMOUS, "subscribe", "users/", False),
        (MqttClient("anna", "#"), "publish", "devices/other/state", False),
    ],
)
def test_an_acl_file_decides(client: MqttClient, may: str, topic: str, permitted: bool) -> None:
    rules = parse_acl_file(ACL)
    decide = rules.may_publish if may == "publish" else rules.may_subscribe
    assert decide(client, levels_of(topic)) is permitted


@pytest.mark.parametrize("text", ["allow a", "topic", "topic a/#/b", "user"])
def test_an_invalid_acl_file_is_refused_with_the_line(text: str) -> None:
    with pytest.raises(ConfigurationError, match="line 2: "):
        parse_acl_file(f"user anna\n{text}")


def secured(**changes: Any) -> str:
    fields = {
        "clients": [
            {"username": "anna", "roles": [{"rolename": "own"}], "groups": [{"groupname": "staff"}]},
            {"username": "bert", "disabled": True},
            {"username": "carl", "clientid": "only"},
        ],
        "groups": [{"groupname": "staff", "roles": [{"rolename": "open"}]}],
        "roles": [
            {
                "rolename": "own",
                "acls": [
                    {"acltype": "publishClientSend", "topic": "a/b", "allow": False, "priority": 1},
                    {"acltype": "publishClientSend", "topic": "a/#", "allow": True},
                    {"acltype": "subscribeLiteral", "topic": "#", "allow": True},
                ],
            },
            {
                "rolename": "open",
                "acls": [
                    {"acltype": "subscribePattern", "topic": "a/#", "allow": True},
                    {"acltype": "publishClientReceive", "topic": "a/secret", "allow": False},
                ],
            },
        ],
        **changes,
    }
    return json.dumps(fields)


@pytest.mark.parametrize(
    ("may", "topic", "permitted"),
    [
        ("publish", "a/c", True),
        ("publish", "a/b", False),
        ("publish", "b", False),
        ("subscribe", "a/c", True),
        ("subscribe", "a/+", False),
        ("subscribe", "a/secret", False),
        ("subscribe", "b", False),
    ],
)
def test_roles_decide_by_priority_and_then_those_of_groups(may: str, topic: str, permitted: bool) -> None:
    rules = parse_dynamic_security(secured())
    decide = rules.may_publish if may == "publish" else rules.may_subscribe
    assert decide(ANNA, levels_of(topic)) is permitted


def test_where_no_rule_decides_the_default_access_holds() -> None:
    rules = parse_dynamic_security(secured(defaultACLAccess={"publishClientSend": True}))
    assert rules.may_publish(ANNA, levels_of("b"))
    assert not rules.may_publish(ANNA, levels_of("a/b"))


def test_anonymous_clients_have_the_roles_of_their_group() -> None:
    assert parse_dynamic_security(secured(anonymousGroup="staff")).may_subscribe(ANONYMOUS, levels_of("a/c"))
    assert not parse_dynamic_security(secured()).may_subscribe(ANONYMOUS, levels_of("a/c"))


@pytest.mark.parametrize(
    ("name", "client_id", "found"), [("anna", "x", 1), ("bert", "x", 0), ("carl", "x", 0), ("carl", "only", 1)]
)
def test_a_disabled_client_and_one_with_another_identifier_cannot_log_in(name: str, client_id: str, found: int) -> None:
    assert (parse_dynamic_security(secured()).client(name, client_id) is not None) == bool(found)


@pytest.mark.parametrize("text", ["{", '{"clients": 1}', '{"roles": [{"rolename": "r", "acls": [{"acltype": "no"}]}]}'])
def test_an_invalid_dynamic_security_file_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_dynamic_security(text)


FILTERS = st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3).flatmap(
    lambda levels: st.sampled_from([tuple(levels), (*levels, "#")])
)
TOPICS = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map(tuple)


@given(rule=FILTERS, asked=FILTERS, topic=TOPICS)
def test_covering_and_overlapping_agree_with_single_topics(
    rule: tuple[str, ...], asked: tuple[str, ...], topic: tuple[str, ...]
) -> None:
    is_in_asked, is_in_rule = covers(asked, topic), covers(rule, topic)
    if covers(rule, asked) and is_in_asked:
        assert is_in_rule
    if is_in_asked and is_in_rule:
        assert overlaps(rule, asked)


def test_a_rule_with_a_dot_also_denies_the_topic_that_looks_the_same_as_a_key() -> None:
    assert overlaps(levels_of("sensor.1/x"), levels_of_key("sensor.1.x"))
    assert overlaps(levels_of("sensor.1/x"), levels_of_key("sensor%2E1.x"))


def test_a_closed_file_is_checked_no_more(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text(ACL)
    clock = Clock()
    watched = WatchedFile(str(tmp_path / "acl"), parse_acl_file, 5, clock)
    assert len(clock.getDelayedCalls()) == 1
    watched.close()
    watched.close()
    assert not clock.getDelayedCalls()


#: As Mosquitto 2.0.11 writes it: clients are members of groups there, and a missing priority is -1.
OF_MOSQUITTO = {
    "clients": [{"username": "anna", "roles": [{"rolename": "all"}]}, {"username": "bert", "disabled": True}],
    "groups": [
        {"groupname": "guests", "roles": [{"rolename": "all"}], "clients": [{"username": "anna"}]},
        {
            "groupname": "staff",
            "roles": [{"rolename": "rooms", "priority": 0}],
            "clients": [{"username": "anna", "priority": 0}],
        },
    ],
    "roles": [
        {"rolename": "all", "acls": [{"acltype": "publishClientSend", "topic": "halls/#", "allow": True}]},
        {"rolename": "rooms", "acls": [{"acltype": "publishClientSend", "topic": "rooms/#", "allow": True}]},
    ],
}


def test_the_members_of_groups_in_a_file_of_mosquitto_have_their_roles() -> None:
    rules = parse_dynamic_security(json.dumps(OF_MOSQUITTO))
    assert rules.may_publish(ANNA, levels_of("rooms/1"))
    assert [each.groupname for each in rules.memberships(rules.clients[0])] == ["staff", "guests"]


def test_a_client_that_was_removed_or_disabled_may_not_stay() -> None:
    rules = parse_dynamic_security(json.dumps(OF_MOSQUITTO))
    admitted = [rules.admits(MqttClient(user, "lamp")) for user in ("anna", "bert", "gone", "")]
    assert admitted == [True, False, False, True]


def test_a_check_that_began_before_a_replacement_does_not_bring_the_old_content_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    file = WatchedFile(str(path), str, 5, Clock())
    read = ((0, 0), "older")
    number = file._replacements
    file.replace("new")
    file._take(read, number)
    assert file.content == "new"
