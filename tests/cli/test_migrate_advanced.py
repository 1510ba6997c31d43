"""``gateway migrate``: advanced.config, whose Erlang terms become settings, plugins and comments."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.cli.migrate.erlang_terms import ErlangAtom, NotATerm, read_term, written
from gateway.cli.migrate.ldap_queries import UnknownQuery, query_text
from gateway.config import load
from gateway_auth.ldap.queries import parse_query

ADVANCED = """
%% a comment with [brackets] and "quotes"
[
  {kernel, [{net_ticktime, 60}]},
  {rabbit, [
    {tcp_listeners, [5673]}, {heartbeat, 30},
    {default_user, <<"admin">>}, {default_pass, <<"word">>}, {default_user_tags, [administrator]},
    {default_permissions, [<<".*">>, <<"a">>, <<"b">>]},
    {loopback_users, []}, {vm_memory_high_watermark, {absolute, 1000000000}},
    {auth_backends, [{rabbit_auth_backend_ldap, rabbit_auth_backend_internal}, rabbit_auth_backend_internal]},
    {log, [{console, [{level, debug}]}]}
  ]},
  {rabbitmq_management, [{listener, [{port, 15673}]}]},
  {rabbitmq_shovel, [{shovels, [{copy, [
    {sources, [{brokers, ["amqp://user:opensesame@far/v"]}]}, {destinations, [{broker, "amqp://"}]},
    {queue, <<"q">>}, {ack_mode, on_confirm}, {publish_fields, [{routing_key, <<"k">>}]}]}]}]},
  {rabbitmq_auth_backend_ldap, [
    {servers, ["ldap.example.com"]}, {use_ssl, true}, {other_bind, {"cn=reader", "readerword"}},
    {vhost_access_query, {in_group, "cn=${vhost}-users,dc=example"}},
    {resource_access_query, {for, [{permission, write, {in_group_nested, "cn=x"}}]}},
    {tag_queries, [{administrator, {in_group, "cn=admins"}}, {management, {exists, "cn=x"}}]}
  ]}
].
"""


def migrated(tmp_path: Path, text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the document and the comments of a migration."""
    source, output = tmp_path / "advanced.config", tmp_path / "gateway.toml"
    source.write_text(text)
    assert main(["migrate", str(source), "--output", str(output), "--force"]) == 0
    load(output)
    written_text = output.read_text()
    comments = [line for line in written_text.splitlines() if line.startswith("# not carried over")]
    return tomllib.loads(written_text), comments


def test_settings_become_those_of_the_gateway(tmp_path: Path) -> None:
    document, _ = migrated(tmp_path, ADVANCED)
    assert document["amqp"] == {"port": 5673, "heartbeat_s": 30}
    assert (document["default_user"], document["default_pass"]) == ("admin", "word")
    assert (document["default_user_tags"], document["loopback_users"]) == (["administrator"], [])
    assert document["default_permissions"] == {"configure": ".*", "write": "a", "read": "b"}
    assert document["memory_high_watermark"] == 1_000_000_000
    assert (document["management"], document["log"]) == ({"port": 15673}, {"level": "debug"})


def test_ldap_with_its_queries(tmp_path: Path) -> None:
    document, comments = migrated(tmp_path, ADVANCED)
    plugins = document["vhosts"]["/"]["plugins"]
    assert list(plugins) == ["auth-ldap", "auth-internal"]
    assert plugins["auth-ldap"] == {
        "servers": ["ldaps://ldap.example.com"],
        "bind_dn": "cn=reader",
        "bind_password": "readerword",
        "vhost_access_query": 'in_group("cn=${vhost}-users,dc=example")',
        "resource_access_query": "false",
        "tag_queries": {"administrator": 'in_group("cn=admins")'},
        "permissions": False,
    }
    assert any("until it has a query, resource_access_query is false" in comment for comment in comments)


def test_a_shovel_becomes_a_command_without_its_password(tmp_path: Path) -> None:
    document, comments = migrated(tmp_path, ADVANCED)
    (comment,) = [each for each in comments if "rabbitmq_shovel" in each]
    assert "gatewayctl set_parameter shovel copy '{" in comment
    for part in ('"src-uri": ["amqp://user:***@far/v"]', '"src-queue": "q"', '"dest-exchange-key": "k"'):
        assert part in comment
    assert "opensesame" not in str(document) + "".join(comments)


def test_everything_else_has_a_comment_with_its_reason(tmp_path: Path) -> None:
    _, comments = migrated(tmp_path, ADVANCED)
    assert len(comments) == 4
    assert "# not carried over: kernel {net_ticktime,60}: this application has no settings here" in comments


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[{rabbit, [{heartbeat, 30}]}", "line 1: ',' was expected, not the end"),
        ("[\n{rabbit}}].", "line 2: ',' was expected, not '}].'"),
        ("[ Variable ].", "line 1: a term was expected, not 'Variable ].'"),
        ("[" * 60, "it is nested too deeply"),
        ("[]. []", "line 1: something follows the full stop"),
    ],
)
def test_a_file_that_is_no_term_is_refused_with_its_line(tmp_path: Path, text: str, reason: str) -> None:
    document, comments = migrated(tmp_path, text)
    assert document == {}
    assert reason in comments[0]
    with pytest.raises(NotATerm):
        read_term(text)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("[].", []),
        ('{a, \'B c\', "d" "e", <<>>, <<"f"/utf8>>}.', (ErlangAtom("a"), ErlangAtom("B c"), "de", "", "f")),
        ("[1, -2, 3.5, 1.0e3, 16#ff].", [1, -2, 3.5, 1000.0, 255]),
        ('#{<<"a">> => [b]}.', [("a", [ErlangAtom("b")])]),
        ('"a\\"b\\n".', 'a"b\n'),
    ],
)
def test_erlang_terms_are_read(text: str, term: object) -> None:
    assert read_term(text) == term


def test_terms_are_written_on_one_line() -> None:
    assert written(read_term('[{a, "x"},\n 1].')) == '[{a,"x"},1]'


@pytest.mark.parametrize(
    ("term", "query"),
    [
        ("{constant, true}", "true"),
        ('{in_group, "cn=${vhost},dc=a", "uniqueMember"}', 'in_group("cn=${vhost},dc=a")'),
        ("{'not', {'or', [{constant, true}, {constant, false}]}}", "not(or(true, false))"),
        ("{for, [{permission, write, {constant, true}}]}", "for(permission=write: true)"),
        ('{equals, {attribute, "${user_dn}", "l"}, {string, "x"}}', 'attribute("l", "x")'),
        ('{equals, "${username}", "a"}', 'equals("${username}", "a")'),
        ('{match, {string, "${name}"}, {string, "^a"}}', 'match("${name}", "^a")'),
    ],
)
def test_a_query_that_the_plugin_reads(term: str, query: str) -> None:
    assert query_text(read_term(f"{term}.")) == query
    parse_query(query)


@pytest.mark.parametrize(
    "term",
    [
        '{in_group_nested, "cn=x"}',
        '{in_group, "cn=x", "owner"}',
        '{exists, "cn=x"}',
        '{match, {attribute, "cn=x", "a"}, {string, "b"}}',
        "{'and', []}",
        '{equals, "a\\"b", "c"}',
        "nothing",
    ],
)
def test_a_query_that_the_plugin_does_not_have(term: str) -> None:
    with pytest.raises(UnknownQuery):
        query_text(read_term(f"{term}."))
