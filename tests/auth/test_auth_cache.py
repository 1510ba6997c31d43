"""``auth-cache`` before ``auth-http``, with stock clients; and chains whose plugins decide on a part."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pika.exceptions
import pytest

from tests.auth.access_server import AccessServer
from tests.auth.open_ldap import BASE, open_ldap
from tests.auth.protected import amqp, mqtt, protected_gateway
from tests.auth.test_auth_http import respond
from tests.interop.mqtt_clients.paho_client import Paho
from tests.management_client import get, put, request
from tests.running import Gateway


@contextmanager
def http_gateway(directory: Path, **settings: object) -> Iterator[tuple[Gateway, AccessServer]]:
    """Run a gateway with ``auth-http``, before ``auth-internal``, and the cache."""
    with AccessServer(respond).running() as server:
        paths = {f"{name}_path": f"{server.url}/{name}" for name in ("user", "vhost", "resource")}
        plugins: dict[str, dict[str, object]] = {
            "auth-http": {**paths, **settings},
            "auth-internal": {},
            "auth-cache": {"plugins": ["auth-http"], "ttl_s": 600, "refusal_ttl_s": 600},
        }
        with protected_gateway(directory, plugins) as gateway:
            yield gateway, server


def use(gateway: Gateway) -> None:
    with amqp(gateway, "bert", "right") as connection:
        connection.channel().queue_declare("mine")


def test_a_client_that_connects_again_is_not_asked_for(tmp_path: Path) -> None:
    with http_gateway(tmp_path) as (gateway, server):
        for _ in range(3):
            use(gateway)
            client = Paho(mqtt(gateway), client_id="lamp", user="bert", password="right")
            client.connect()
            client.disconnect()
        logins = [form["username"] for form in server.asked("/user")]
        assert logins.count("bert") == 2  # a login over MQTT has a client identifier, so it is another one
        assert len(server.asked("/vhost")) == 1
        logins, permissions = get(gateway, "plugins/%2F/auth-cache/resources/answers")
        assert logins == {"plugin": "auth-http", "kind": "logins", "kept": 3, "hits": 4, "misses": 3}  # with guest's
        # the virtual host, with and without a client identifier, and to configure the queue
        assert permissions["kept"] == 3
        for path in ("auth/cache", "auth/cache/%2F"):
            before = len(server.asked("/resource"))
            request(gateway, "DELETE", path)
            use(gateway)
            assert len(server.asked("/resource")) > before
        assert [form["username"] for form in server.asked("/user")].count("bert") == 4
        assert len(server.asked("/vhost")) == 3


def test_a_refused_login_is_refused_again_without_the_server(tmp_path: Path) -> None:
    with http_gateway(tmp_path) as (gateway, server):
        for _ in range(3):
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                amqp(gateway, "bert", "wrong")
        assert [form["username"] for form in server.asked("/user")] == ["bert"]


def test_the_internal_database_may_decide_on_the_permissions_of_another_plugins_users(tmp_path: Path) -> None:
    with open_ldap(tmp_path / "server") as url:
        ldap = {"servers": [url], "user_dn_pattern": f"uid=${{username}},ou=people,{BASE}", "permissions": False}
        with protected_gateway(tmp_path / "broker", {"auth-ldap": ldap, "auth-internal": {}}) as gateway:
            put(gateway, "users/anna", {"password_hash": "", "tags": ""})
            put(gateway, "permissions/%2F/anna", {"configure": "^mine", "write": "", "read": ""})
            with amqp(gateway, "anna", "right") as connection:
                connection.channel().queue_declare("mine")
                with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue 'yours'"):
                    connection.channel().queue_declare("yours")
            with pytest.raises(pika.exceptions.AMQPConnectionError):
                amqp(gateway, "bert", "right")  # the broker knows no permission of his


def test_another_plugin_may_decide_on_the_permissions_of_internal_users(tmp_path: Path) -> None:
    with http_gateway(tmp_path, logins=False) as (gateway, server):
        put(gateway, "users/carl", {"password": "his", "tags": ""})
        with amqp(gateway, "carl", "his") as connection:
            connection.channel().queue_declare("open")
            with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue 'secret'"):
                connection.channel().queue_declare("secret")
        assert not server.asked("/user")  # the server decides on permissions alone, so it is asked for all users
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            amqp(gateway, "bert", "right")  # the server would accept him
