"""``auth-http`` against a real HTTP server, with stock clients of all protocols."""

import json
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pika.exceptions
import pytest

from gateway_auth.http.settings import HttpSettings
from tests.auth.access_server import AccessServer, Form
from tests.auth.protected import amqp, mqtt, protected_gateway, require_mqtt_refuses, require_stomp_works
from tests.interop.mqtt_clients.paho_client import Paho, Refused
from tests.running import Gateway

USERS = {"anna": "allow management", "bert": "ALLOW", "ghost": "deny"}


def respond(path: str, form: Form) -> tuple[int, bytes]:
    """Decide as the tests expect: names that begin with ``secret`` are denied to all but Anna."""
    match path:
        case "/user":
            return 200, (USERS.get(form["username"], "deny") if form["password"] == "right" else "deny").encode()
        case "/vhost":
            return 200, b"deny" if form["username"] == "outsider" else b"allow"
        case "/broken":
            return 500, b"allow"
        case _:
            name = form.get("routing_key") or form["name"]
            return 200, b"deny" if name.startswith("secret") and form["username"] != "anna" else b"allow"


@pytest.fixture(scope="module", params=["post", "get"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, AccessServer]]:
    with AccessServer(respond).running() as running:
        yield request.param, running


@pytest.fixture(scope="module")
def gateway(server: tuple[str, AccessServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    method, running = server
    paths = {f"{name}_path": f"{running.url}/{name}" for name in ("user", "vhost", "resource", "topic")}
    plugins: dict[str, dict[str, object]] = {"auth-http": {**paths, "http_method": method}}
    with protected_gateway(tmp_path_factory.mktemp(method), plugins) as started:
        yield started


def test_amqp_requests_wait_for_their_permissions(gateway: Gateway, server: tuple[str, AccessServer]) -> None:
    with amqp(gateway, "bert", "right") as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("").method.queue
        channel.basic_publish("", queue, b"hello")
        assert channel.basic_get(queue, auto_ack=True)[2] == b"hello"
    asked = [
        (form["resource"], form["name"], form["permission"])
        for form in server[1].asked("/resource")
        if form["username"] == "bert"
    ]
    assert asked[:3] == [
        ("queue", queue, "configure"),
        ("exchange", "amq.default", "write"),
        ("queue", queue, "read"),
    ]
    (entered,) = server[1].asked("/vhost")
    assert entered == {"username": "bert", "vhost": "/", "ip": "127.0.0.1", "tags": ""}


def test_a_denied_resource_is_refused(gateway: Gateway) -> None:
    with amqp(gateway, "bert", "right") as connection:
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="queue 'secret' in vhost '/' refused"):
            connection.channel().queue_declare("secret")
        connection.channel().queue_declare("open")


@pytest.mark.parametrize(("user", "password"), [("bert", "wrong"), ("ghost", "right")])
def test_a_denied_login_is_refused(gateway: Gateway, user: str, password: str) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        amqp(gateway, user, password)


def test_mqtt_topics_are_asked_for_with_the_client_identifier(
    gateway: Gateway, server: tuple[str, AccessServer]
) -> None:
    client = Paho(mqtt(gateway), client_id="thermometer", user="bert", password="right")
    client.connect()
    assert client.subscribe("rooms/+", qos=1) == [1]
    assert client.subscribe("secrets", qos=1) == [0x87]
    client.publish("rooms/one", b"20", qos=1)
    assert client.next().payload == b"20"
    client.disconnect()
    forms = server[1].asked("/topic")
    assert {form["variable_map.client_id"] for form in forms} == {"thermometer"}
    assert {(form["routing_key"], form["permission"]) for form in forms} == {
        ("rooms.*", "read"),
        ("secrets", "read"),
        ("rooms.one", "write"),
    }
    assert server[1].asked("/user")[-1]["client_id"] == "thermometer"


def test_an_mqtt_login_with_a_wrong_password_is_refused(gateway: Gateway) -> None:
    require_mqtt_refuses(gateway, "bert", "wrong")


def test_stomp_destinations_are_asked_for(gateway: Gateway) -> None:
    require_stomp_works(gateway, "bert", "right", wrong="wrong")


def test_the_tags_of_the_answer_grant_the_http_api(gateway: Gateway) -> None:
    host, port = gateway.addresses["management"]
    request = urllib.request.Request(f"http://{host}:{port}/api/whoami")
    request.add_header("Authorization", f"Basic {b64encode(b'anna:right').decode()}")
    with urllib.request.urlopen(request, timeout=20) as response:
        assert json.load(response)["tags"] == ["management"]


def test_a_server_that_fails_refuses_the_login(tmp_path: Path) -> None:
    with AccessServer(respond).running() as running:
        paths = {f"{name}_path": f"{running.url}/broken" for name in ("user", "vhost", "resource")}
        with protected_gateway(tmp_path, {"auth-http": paths}) as gateway:
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                amqp(gateway, "bert", "right")
            assert "it answered with status 500" in gateway.log_has("access server gave no answer")


def test_settings_that_are_wrong_are_named(tmp_path: Path) -> None:
    with protected_gateway(tmp_path, {"auth-http": {"user_path": "ftp://here"}}) as gateway:
        assert "user_path" in gateway.log_has("plugin inert")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "user_path is required, unless logins is false"),
        ({"user_path": "http://here"}, "vhost_path and resource_path are required, unless permissions is false"),
        ({"logins": False, "permissions": False}, "logins and permissions are both false"),
    ],
)
def test_a_path_that_is_missing_is_named(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        HttpSettings.model_validate(settings)


def test_wrong_passwords_are_throttled_before_the_server_is_asked(tmp_path: Path) -> None:
    with AccessServer(respond).running() as running:
        paths = {f"{name}_path": f"{running.url}/{name}" for name in ("user", "vhost", "resource")}
        plugins: dict[str, dict[str, object]] = {"auth-http": paths, "auth-internal": {}}
        with protected_gateway(tmp_path, plugins, "login.free_attempts=3") as gateway:
            statuses = [whoami(gateway, "bert", f"wrong-{number}") for number in range(8)]
            assert statuses == [401] * 3 + [429] * 5
            assert len(running.asked("/user")) == 3
            with pytest.raises(Refused):
                Paho(mqtt(gateway), user="bert", password="wrong-again").connect()
            assert whoami(gateway, "anna", "right") == 200


def whoami(gateway: Gateway, user: str, password: str) -> int:
    """Return the status of a login over HTTP."""
    host, port = gateway.addresses["management"]
    request = urllib.request.Request(f"http://{host}:{port}/api/whoami")
    request.add_header("Authorization", f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
