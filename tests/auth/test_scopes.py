"""Scopes of tokens as permissions, compared with RabbitMQ's rules."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from gateway.api import Operation
from gateway_auth.oauth.claims import scopes_of
from gateway_auth.oauth.scopes import ScopePermissions, Scopes, matches, pattern_of
from gateway_auth.oauth.settings import OAuthSettings

TEXTS = st.text("ab/*", max_size=8)


@given(pattern=TEXTS, text=st.text("ab/", max_size=12))
def test_a_pattern_matches_as_the_regular_expression_with_the_same_wildcards(pattern: str, text: str) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert matches(pattern_of(pattern), text) == (re.fullmatch(expression, text) is not None)


@pytest.mark.parametrize(
    ("scope", "operation", "name", "allowed"),
    [
        ("read:*/*", Operation.READ, "orders", True),
        ("read:*/*", Operation.WRITE, "orders", False),
        ("read:shop/orders", Operation.READ, "orders", True),
        ("read:shop/ord*", Operation.READ, "orders", True),
        ("read:other/*", Operation.READ, "orders", False),
        ("write:shop/amq.default", Operation.WRITE, "", True),
        ("configure:shop/a%2Fb", Operation.CONFIGURE, "a/b", True),
        ("read:shop/a%2A", Operation.READ, "a*", True),
        ("read:shop/a%2A", Operation.READ, "ab", False),
        ("read:{vhost}/{sub}-*", Operation.READ, "anna-1", True),
        ("read:{vhost}/{sub}-*", Operation.READ, "otto-1", False),
        ("read:shop/{team}", Operation.READ, "a*", True),
        ("read:shop/{team}", Operation.READ, "ab", False),
        ("read:shop/{exp}", Operation.READ, "5", False),
        ("read:*/{none}", Operation.READ, "{none}", False),
        ("read:shop", Operation.READ, "orders", False),
        ("delete:shop/*", Operation.CONFIGURE, "orders", False),
    ],
)
def test_a_scope_permits_what_it_names(scope: str, operation: Operation, name: str, allowed: bool) -> None:
    claims = {"sub": "anna", "team": "a*", "exp": 5}
    scopes = Scopes.parse([f"mq.{scope}"], "mq.", claims).in_vhost("shop")
    assert ScopePermissions("anna", "shop", scopes).may(operation, name) is allowed


def test_scopes_of_other_servers_are_ignored() -> None:
    assert Scopes.parse(["other.read:*/*", "read:*/*", "other.tag:administrator"], "mq.") == Scopes((), frozenset())


def test_tags_are_scopes() -> None:
    assert Scopes.parse(["mq.tag:administrator", "mq.tag:monitoring"], "mq.").tags == {"administrator", "monitoring"}


@pytest.mark.parametrize(("key", "allowed"), [("a.b", True), ("b.a", False)])
def test_the_third_part_restricts_routing_keys(key: str, allowed: bool) -> None:
    permissions = ScopePermissions("anna", "/", Scopes.parse(["write:*/amq.topic/a.*"], "").in_vhost("/"))
    assert permissions.restricts_topics
    assert permissions.may_use_topic(Operation.WRITE, "amq.topic", key) is allowed
    assert not permissions.may_use_every_topic(Operation.WRITE, "amq.topic")


SETTINGS = OAuthSettings(
    resource_server_id="mq",
    resource_server_type="broker",
    additional_scopes_key="roles realm.access.roles",
    scope_aliases={"admin": ["mq.tag:administrator", "mq.read:*/*"]},
    hmac_keys={"a": SecretStr("x" * 32)},
)
DETAIL = {"type": "broker", "locations": ["cluster:mq/vhost:shop/queue:orders"], "actions": ["read", "sing"]}

CLAIMED = [
    pytest.param({"scope": "mq.read:a/b  mq.write:a/b"}, ["mq.read:a/b", "mq.write:a/b"], id="text"),
    pytest.param({"scope": ["mq.read:a/b", 5]}, ["mq.read:a/b"], id="list"),
    pytest.param({"scope": 5, "roles": None}, [], id="another type"),
    pytest.param({"scope": {"mq": "read:a/b", "other": "write:a/b"}}, ["mq.read:a/b"], id="by server"),
    pytest.param({"realm": {"access": {"roles": ["mq.read:a/b"]}}}, ["mq.read:a/b"], id="path"),
    pytest.param({"realm": [5, {"access": {"roles": "mq.read:a/b"}}]}, ["mq.read:a/b"], id="path through a list"),
    pytest.param({"roles": ["admin"]}, ["admin", "mq.tag:administrator", "mq.read:*/*"], id="alias"),
    pytest.param(
        {"authorization": {"permissions": [{"rsname": "x", "scopes": ["mq.read:a/b"]}]}}, ["mq.read:a/b"], id="Keycloak"
    ),
    pytest.param({"authorization_details": [DETAIL]}, ["mq.read:shop/orders/*"], id="rich request"),
    pytest.param({"authorization_details": [{**DETAIL, "type": "bank"}]}, [], id="another type of server"),
    pytest.param({"authorization_details": [{**DETAIL, "locations": "cluster:x"}]}, [], id="another server"),
    pytest.param({"authorization_details": [{**DETAIL, "locations": "vhost:shop"}]}, [], id="no server"),
    pytest.param(
        {"authorization_details": [{**DETAIL, "locations": "cluster:m*", "actions": "management"}]},
        ["mq.tag:management"],
        id="tag",
    ),
    pytest.param({"authorization_details": [5, {"type": "broker"}, DETAIL | {"actions": 5}]}, [], id="nonsense"),
]


@pytest.mark.parametrize(("claims", "scopes"), CLAIMED)
def test_scopes_are_found_where_rabbitmq_finds_them(claims: dict[str, object], scopes: list[str]) -> None:
    assert scopes_of(claims, SETTINGS) == scopes
