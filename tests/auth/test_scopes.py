"""Scopes of tokens as permissions, compared with RabbitMQ's rules."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import Operation
from gateway_auth.oauth.scopes import ScopePermissions, Scopes, matches

TEXTS = st.text("ab/*", max_size=8)


@given(pattern=TEXTS, text=st.text("ab/", max_size=12))
def test_a_pattern_matches_as_the_regular_expression_with_the_same_wildcards(pattern: str, text: str) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert matches(pattern, text) == (re.fullmatch(expression, text) is not None)


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
        ("read:shop", Operation.READ, "orders", False),
        ("delete:shop/*", Operation.CONFIGURE, "orders", False),
    ],
)
def test_a_scope_permits(scope: str, operation: Operation, name: str, allowed: bool) -> None:
    scopes = Scopes.parse([f"mq.{scope}"], "mq.").in_vhost("shop")
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
