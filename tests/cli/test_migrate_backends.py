"""``gateway migrate``: the authentication backends of rabbitmq.conf become plugins, in the order of the chain."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config import load

LDAP = """
auth_backends.1.authn = ldap
auth_backends.1.authz = internal
auth_backends.2 = internal
auth_ldap.servers.1 = ldap1.example.com
auth_ldap.servers.2 = 2001:db8::1
auth_ldap.port = 1636
auth_ldap.use_ssl = true
auth_ldap.timeout = 2500
auth_ldap.connection_pool_size = 100
auth_ldap.user_dn_pattern = uid=${username},ou=people
auth_ldap.dn_lookup_bind.user_dn = cn=reader
auth_ldap.dn_lookup_bind.password = secret
auth_ldap.other_bind = anon
auth_ldap.group_lookup_base = ou=groups
auth_ldap.ssl_options.verify = verify_peer
"""

OAUTH = """
auth_backends.1 = oauth2
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.jwks_url = https://login/keys
auth_oauth2.preferred_username_claims.1 = email
auth_oauth2.preferred_username_claims.2 = sub
auth_oauth2.algorithms.1 = ES256
auth_oauth2.scope_aliases.admin = rabbitmq.tag:administrator rabbitmq.read:*/*
auth_oauth2.signing_keys.one = {key}
auth_oauth2.verify_aud = false
"""

CACHE = """
auth_backends.1 = cache
auth_backends.2 = internal
auth_cache.cached_backend = http
auth_cache.cache_ttl = 20000
auth_cache.cache_refusals = true
auth_http.user_path = http://auth/user
auth_http.vhost_path = http://auth/vhost
auth_http.resource_path = http://auth/resource
"""


@pytest.fixture
def plugins(tmp_path: Path) -> Any:
    """Migrate a text; return the plugins of the default virtual host in their order, and the comments."""

    def migrate(text: str) -> tuple[dict[str, Any], str]:
        source, output, key = (tmp_path / name for name in ("rabbitmq.conf", "gateway.toml", "key.pem"))
        key.write_text("-----BEGIN PUBLIC KEY-----\n")
        source.write_text(text.replace("{key}", str(key)))
        assert main(["migrate", str(source), "--output", str(output), "--force"]) == 0
        load(output)
        written = output.read_text()
        found: dict[str, Any] = tomllib.loads(written).get("vhosts", {}).get("/", {}).get("plugins", {})
        return found, written.partition("\n[")[0]

    return migrate


def test_ldap_for_logins_and_the_broker_for_permissions(plugins: Any) -> None:
    found, comments = plugins(LDAP)
    assert list(found) == ["auth-ldap", "auth-internal"]
    assert found["auth-ldap"] == {
        "servers": ["ldaps://ldap1.example.com:1636", "ldaps://[2001:db8::1]:1636"],
        "timeout_s": 2.5,
        "threads": 64,
        "user_dn_pattern": "uid=${username},ou=people",
        "bind_dn": "cn=reader",
        "bind_password": "secret",
        "group_lookup_base": "ou=groups",
        "permissions": False,
    }
    assert "not carried over" not in comments


def test_oauth_with_keys_claims_and_aliases(plugins: Any) -> None:
    found, comments = plugins(OAUTH)
    assert found["auth-oauth2"] == {
        "resource_server_id": "rabbitmq",
        "jwks_url": "https://login/keys",
        "preferred_username_claims": ["email", "sub"],
        "algorithms": ["ES256"],
        "scope_aliases": {"admin": ["rabbitmq.tag:administrator", "rabbitmq.read:*/*"]},
        "signing_keys": {"one": "-----BEGIN PUBLIC KEY-----\n"},
        "verify_aud": False,
    }
    assert list(found) == ["auth-oauth2", "auth-internal"]
    assert "auth-internal is always on, here as the last" in comments


def test_the_cache_stands_behind_what_it_caches(plugins: Any) -> None:
    found, _ = plugins(CACHE)
    assert list(found) == ["auth-http", "auth-cache", "auth-internal"]
    assert found["auth-cache"] == {"plugins": ["auth-http"], "ttl_s": 20.0, "refusal_ttl_s": 20.0}


def test_the_broker_comes_first_by_itself(plugins: Any) -> None:
    found, _ = plugins("auth_backends.1 = internal\nauth_backends.2 = ldap\nauth_ldap.servers.1 = a\n")
    assert found == {"auth-ldap": {"servers": ["ldap://a"]}}


@pytest.mark.parametrize(
    ("line", "comment"),
    [
        ("auth_backends.1 = ldap", "auth-ldap: servers is missing"),
        ("auth_backends.1 = http", "auth-http: user_path is missing"),
        ("auth_backends.1 = oauth2", "auth-oauth2: resource_server_id is missing"),
        ("auth_oauth2.signing_keys.a = /nowhere", "signing_keys of auth-oauth2 has the key itself"),
    ],
)
def test_a_backend_that_cannot_work_is_left_out(plugins: Any, line: str, comment: str) -> None:
    found, comments = plugins(line)
    assert comment in comments
    assert set(found) <= {"auth-internal"}


QUERIES = """
auth_backends.1 = ldap
auth_ldap.servers.1 = ldap.example.com
auth_ldap.user_dn_pattern = uid=${username}
auth_ldap.queries.vhost_access = {in_group, "cn=${vhost}-users"}
auth_ldap.queries.resource_access = '''
{for, [{permission, configure, {constant, false}},
       {permission, write, {in_group, "cn=writers"}}]}
'''
auth_ldap.queries.topic_access = {in_group_nested, "cn=x"}
auth_ldap.queries.tags = '''
[{administrator, {in_group, "cn=admins"}},
 {management, {constant, true}}]
'''
heartbeat = 30
"""


def test_queries_of_rabbitmq_4_1_are_carried_over(plugins: Any) -> None:
    found, comments = plugins(QUERIES)
    assert found["auth-ldap"] == {
        "servers": ["ldap://ldap.example.com"],
        "user_dn_pattern": "uid=${username}",
        "vhost_access_query": 'in_group("cn=${vhost}-users")',
        "resource_access_query": 'for(permission=configure: false, permission=write: in_group("cn=writers"))',
        "topic_access_query": "false",
        "tag_queries": {"administrator": 'in_group("cn=admins")', "management": "true"},
    }
    assert "until it has a query, topic_access_query is false" in comments


@pytest.mark.parametrize(
    ("value", "comment"),
    [
        ("{in_group, ", "auth_ldap.queries.vhost_access = {in_group,: line 1: a term was expected"),
        ("'''\n{constant,\n true", "auth_ldap.queries.vhost_access = {constant, true: line 2: "),
        ("'''\n'''", "auth_ldap.queries.vhost_access =: line 1: a term was expected"),
    ],
)
def test_a_query_that_is_no_term_permits_nothing(plugins: Any, value: str, comment: str) -> None:
    beginning = QUERIES.partition("auth_ldap.queries")[0]
    found, comments = plugins(f"{beginning}auth_ldap.queries.vhost_access = {value}\n")
    assert found["auth-ldap"]["vhost_access_query"] == "false"
    assert comment in comments


def test_tags_that_are_no_list_are_a_comment(plugins: Any) -> None:
    found, comments = plugins(QUERIES.partition("auth_ldap.queries")[0] + "auth_ldap.queries.tags = {constant, true}\n")
    assert "tag_queries" not in found["auth-ldap"]
    assert "auth_ldap.queries.tags {constant,true}: it is no list of tags" in comments
