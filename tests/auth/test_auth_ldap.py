"""``auth-ldap`` against a real OpenLDAP, with stock clients; and its queries without one."""

from collections.abc import Iterator
from pathlib import Path

import pika.exceptions
import pytest

from gateway_auth.ldap.queries import parse_query
from gateway_auth.ldap.settings import LdapSettings
from tests.auth.open_ldap import BASE, open_ldap
from tests.auth.protected import amqp, mqtt, protected_gateway, require_mqtt_refuses, require_stomp_works
from tests.broker.tls.certificates import Authority
from tests.interop.mqtt_clients.paho_client import Paho
from tests.management_client import put
from tests.running import Gateway

RULES: dict[str, object] = {
    "group_lookup_base": f"ou=groups,{BASE}",
    "resource_access_query": "for(permission=write: in_group(cn=writers), permission=read: true, "
    "permission=configure: or(attribute(employeeType, operator), match(${name}, ^bert-)))",
    "topic_access_query": 'or(in_group(cn=writers), match(${routing_key}, "^open\\."))',
    "tag_queries": {"administrator": "attribute(employeeType, operator)"},
}


@pytest.fixture(scope="module", params=["pattern", "lookup"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("ldap")
    naming: dict[str, object] = {"user_dn_pattern": f"uid=${{username}},ou=people,{BASE}"}
    if request.param == "lookup":
        naming = {
            "dn_lookup_base": f"ou=people,{BASE}",
            "bind_dn": f"cn=admin,{BASE}",
            "bind_password": "admin secret",
        }
    with open_ldap(directory / "server") as url:
        settings = {"servers": ["ldap://127.0.0.1:1", url], **naming, **RULES}
        with protected_gateway(directory / "broker", {"auth-ldap": settings}) as started:
            yield started


def test_a_member_of_the_group_writes(gateway: Gateway) -> None:
    with amqp(gateway, "anna", "right") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("any", auto_delete=True)
        channel.basic_publish("", "any", b"hello")
        assert channel.basic_get("any", auto_ack=True)[2] == b"hello"


def test_another_user_does_not(gateway: Gateway) -> None:
    with amqp(gateway, "bert", "right") as connection:
        channel = connection.channel()
        channel.queue_declare("bert-1", auto_delete=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue 'other' in vhost '/' refused"):
            channel.queue_declare("other")


@pytest.mark.parametrize(
    ("user", "password"),
    [("anna", "wrong"), ("zoe", "right"), ("anna", ""), ("*", "right"), ("anna,ou=people", "right")],
)
def test_a_wrong_login_is_refused(gateway: Gateway, user: str, password: str) -> None:
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        amqp(gateway, user, password)


def test_mqtt_topics_are_decided_by_the_topic_query(gateway: Gateway) -> None:
    anna = Paho(mqtt(gateway), client_id="anna", user="anna", password="right")
    anna.connect()
    assert anna.subscribe("closed/1", qos=1) == [1]
    anna.disconnect()
    require_mqtt_refuses(gateway, "anna", "wrong")


def test_users_of_the_broker_keep_their_own_permissions(tmp_path: Path) -> None:
    with open_ldap(tmp_path / "server") as url:
        rules = {"servers": [url], "user_dn_pattern": f"uid=${{username}},ou=people,{BASE}", **RULES}
        with protected_gateway(tmp_path / "broker", {"auth-ldap": rules, "auth-internal": {}}) as gateway:
            with amqp(gateway, "guest", "guest") as connection:
                connection.channel().queue_declare("any", auto_delete=True)
            refusal = pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue 'any' in vhost '/' refused")
            with amqp(gateway, "bert", "right") as connection, refusal:
                connection.channel().queue_declare("any")


@pytest.mark.parametrize(("scheme", "starttls"), [("ldaps", False), ("ldap", True)])
def test_a_server_is_asked_over_tls_only_if_its_certificate_is_trusted(
    tmp_path: Path, scheme: str, starttls: bool
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    with open_ldap(tmp_path / "server", authority, scheme) as url:
        rules: dict[str, object] = {
            "servers": [url],
            "starttls": starttls,
            "user_dn_pattern": f"uid=${{username}},ou=people,{BASE}",
        }
        with protected_gateway(tmp_path / "broker", {}) as gateway:
            put(gateway, "plugins/%2F/auth-ldap", {**rules, "ca_file": str(authority.certificate)})
            with amqp(gateway, "anna", "right") as connection:
                connection.channel().queue_declare("any", auto_delete=True)
            for ca_file in (str(other.certificate), ""):
                put(gateway, "plugins/%2F/auth-ldap", {**rules, "ca_file": ca_file})
                with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                    amqp(gateway, "anna", "right")
            assert gateway.log_has("access server gave no answer")


def test_stomp_logs_in(gateway: Gateway) -> None:
    require_stomp_works(gateway, "anna", "right", wrong="wrong")


def test_a_server_that_does_not_answer_refuses_the_login(tmp_path: Path) -> None:
    with protected_gateway(tmp_path, {"auth-ldap": {"servers": ["ldap://127.0.0.1:1"]}}) as gateway:
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            amqp(gateway, "anna", "right")
        assert "server=auth-ldap" in gateway.log_has("access server gave no answer")


class Entries:
    """A directory of one group and one attribute."""

    def is_in_group(self, group: str, user_dn: str) -> bool:
        return group == "cn=writers-\\2f" or group == "cn=writers"

    def has_value(self, dn: str, attribute: str, value: str) -> bool:
        return (attribute, value) == ("uid", "anna")


VARIABLES = {"username": "anna", "user_dn": "uid=anna", "vhost": "/", "permission": "read", "name": "a, b"}


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("true", True),
        ("not(true)", False),
        ("and(true, false)", False),
        ("or(false, true)", True),
        ("in_group(cn=writers)", True),
        ("in_group(cn=others)", False),
        ("attribute(uid, ${username})", True),
        ('equals(${name}, "a, b")', True),
        ('match(${name}, "^a,")', True),
        ("for(permission=write: true, permission=read: equals(${vhost}, /))", True),
        ("for(permission=write: true)", False),
    ],
)
def test_a_query_about_a_user_is_true_or_false(query: str, holds: bool) -> None:
    assert parse_query(query).holds(Entries(), VARIABLES) is holds


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "expected a word"),
        ("yes", "expected '\\('"),
        ("yes(1)", "unknown query 'yes'"),
        ("true true", "expected '\\('|unexpected|cannot read|unknown"),
        ("match(a, [)", "invalid regular expression"),
        ("equals(${who}, a)", "unknown variable 'who'"),
        ("for(colour=red: true)", "expected KEY=VALUE"),
        ("and(true", "expected '\\)'"),
    ],
)
def test_an_invalid_query_is_refused_with_the_reason(query: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_query(query)


def test_a_pattern_without_the_user_is_refused() -> None:
    with pytest.raises(ValueError, match="user_dn_pattern must contain"):
        LdapSettings(servers=["ldap://here"], user_dn_pattern="cn=admin")
