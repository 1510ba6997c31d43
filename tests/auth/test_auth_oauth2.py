"""``auth-oauth2`` with a real key set over HTTP and stock clients of all protocols."""

import hashlib
import hmac
import json
import socket
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import jwt
import pika.exceptions
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gateway.api import Principal
from gateway_auth.http_client import HttpClient
from gateway_auth.oauth.keys import KeySet
from gateway_auth.oauth.settings import OAuthSettings
from gateway_auth.oauth.tokens import TokenVerifier
from tests.auth.issuer import ALL, Issuer
from tests.auth.protected import amqp, mqtt, protected_gateway, require_stomp_works, stomp
from tests.interop.mqtt_clients.paho_client import Paho, Refused
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.management_client import put
from tests.protocols.mqtt.frame_reader import FrameReader
from tests.protocols.mqtt.packets import Writer, authentication
from tests.running import Gateway
from tests.waiting import wait_until

SECRET = "a secret of thirty-two characters"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    with found.server.running():
        yield found


@pytest.fixture(scope="module")
def gateway(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    settings = {"resource_server_id": "mq", "jwks_url": issuer.server.url, "jwks_min_interval_s": 0.1}
    with protected_gateway(tmp_path_factory.mktemp("oauth"), {"auth-oauth2": settings}) as started:
        yield started


def test_the_scopes_of_a_token_are_the_permissions(gateway: Gateway, issuer: Issuer) -> None:
    token = issuer.token(scope="mq.configure:%2F/mine-* mq.write:*/* mq.read:*/*")
    with amqp(gateway, "", token) as connection:
        channel = connection.channel()
        channel.queue_declare("mine-1", auto_delete=True)
        with pytest.raises(
            pika.exceptions.ChannelClosedByBroker, match="queue 'yours' in vhost '/' refused for user 'anna'"
        ):
            channel.queue_declare("yours")


def test_a_token_without_scopes_for_the_virtual_host_is_refused(gateway: Gateway, issuer: Issuer) -> None:
    with pytest.raises(pika.exceptions.AMQPConnectionError):
        amqp(gateway, "", issuer.token(scope="mq.read:other/*"))


def test_a_key_that_is_not_known_is_fetched(gateway: Gateway, issuer: Issuer) -> None:
    with amqp(gateway, "", issuer.token()) as connection:
        assert connection.is_open
    time_of_rotation = len(issuer.server.requests)
    issuer.rotate()
    wait_until(lambda: _opens(gateway, issuer.token()), "the new key is not fetched")
    assert len(issuer.server.requests) > time_of_rotation


def _opens(gateway: Gateway, token: str) -> bool:
    try:
        amqp(gateway, "", token).close()
    except pika.exceptions.AMQPError:
        return False
    return True


def test_an_expired_token_closes_the_connection(gateway: Gateway, issuer: Issuer) -> None:
    connection = amqp(gateway, "", issuer.token(lasts_s=2))
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="the credentials have expired"):
        wait_until(lambda: connection.process_data_events(1), "it stays open")


def test_update_secret_extends_a_connection(gateway: Gateway, issuer: Issuer) -> None:
    connection = amqp(gateway, "", issuer.token(lasts_s=5))
    connection.update_secret(issuer.token(scope="mq.configure:*/new-*"), "it expires")
    started = time.monotonic()
    wait_until(lambda: connection.process_data_events(0.5) or time.monotonic() - started > 6, "no time passes")
    connection.channel().queue_declare("new-queue", auto_delete=True)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("old")
    connection.close()


def test_a_new_secret_of_another_user_closes_the_connection(gateway: Gateway, issuer: Issuer) -> None:
    connection = amqp(gateway, "", issuer.token())
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="the new secret was refused"):
        connection.update_secret(issuer.token("bert"), "it expires")


def test_mqtt_takes_a_token_as_password_and_ends_when_it_expires(gateway: Gateway, issuer: Issuer) -> None:
    client = Paho(mqtt(gateway), user="any", password=issuer.token(lasts_s=2))
    client.connect()
    assert client.subscribe("rooms/+", qos=1) == [1]
    assert client.wait_for_the_end().value == 0x87


@pytest.mark.parametrize(("changes", "status"), [({}, 200), ({"aud": ["other"]}, 401), ({"exp": 1}, 401)])
def test_the_http_api_takes_a_bearer_token(
    gateway: Gateway, issuer: Issuer, changes: dict[str, Any], status: int
) -> None:
    host, port = gateway.addresses["management"]
    token = issuer.token(scope=f"{ALL} mq.tag:management", **changes)
    connection = HTTPConnection(host, port, timeout=20)
    with closing(connection):
        connection.request("GET", "/api/whoami", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        content = json.load(answer)
    assert answer.status == status
    assert status != 200 or content["tags"] == ["management"]


def test_mqtt_3_loses_the_connection_when_its_token_expires(gateway: Gateway, issuer: Issuer) -> None:
    writer = Writer(4)
    with socket.create_connection(gateway.addresses["mqtt"], timeout=20) as line:
        line.sendall(writer.connect("old", username="any", password=issuer.token(lasts_s=2).encode()))
        received = b""
        while more := line.recv(4096):
            received += more
    assert received == b"\x20\x02\x00\x00"  # CONNACK; MQTT 3.1.1 has no DISCONNECT from the server


def test_stomp_gets_an_error_when_its_token_expires(gateway: Gateway, issuer: Issuer) -> None:
    client = Stomp(stomp(gateway)).connect("any", issuer.token(lasts_s=2))
    client.subscribe("/queue/letters")
    assert "the credentials have expired" in str(client.error())


def test_new_settings_of_the_keys_fetching_keep_the_permissions_of_connected_clients(
    gateway: Gateway, issuer: Issuer
) -> None:
    path = "plugins/%2F/auth-oauth2"
    settings = {"resource_server_id": "mq", "jwks_url": issuer.server.url, "jwks_min_interval_s": 0.1}
    with amqp(gateway, "", issuer.token()) as connection:
        put(gateway, path, {**settings, "timeout_s": 3.0})
        connection.channel().queue_declare("kept", auto_delete=True)
        put(gateway, path, {**settings, "scope_prefix": "other."})
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="access to vhost '/' refused"):
            connection.channel().queue_declare("lost", auto_delete=True)
        put(gateway, path, settings)
        connection.channel().queue_declare("kept", auto_delete=True)


def test_mqtt_5_authenticates_again_with_auth(gateway: Gateway, issuer: Issuer) -> None:
    writer, reader = Writer(5), FrameReader(5)
    with socket.create_connection(gateway.addresses["mqtt"], timeout=20) as line:

        def answer(packet: bytes) -> str:
            line.sendall(packet)
            while not (packets := reader.feed(line.recv(4096))):
                pass
            return str(packets[0]).split()[0]

        bearer = f"n,,\x01auth=Bearer {issuer.token(lasts_s=3)}\x01\x01".encode()
        assert answer(writer.connect("c", properties=authentication("OAUTHBEARER", bearer))) == "CONNACK"
        renewed = authentication("OAUTHBEARER", issuer.token(lasts_s=600).encode())
        assert answer(writer.auth(0x19, renewed)) == "AUTH"
        started = time.monotonic()
        wait_until(lambda: time.monotonic() - started > 5, "no time passes")
        assert answer(writer.pingreq()) == "PINGRESP"


def test_mqtt_refuses_a_token_of_another_server(gateway: Gateway, issuer: Issuer) -> None:
    with pytest.raises(Refused):
        Paho(mqtt(gateway), user="any", password=issuer.token(aud=["other"])).connect()


def test_stomp_takes_a_token_as_passcode(gateway: Gateway, issuer: Issuer) -> None:
    require_stomp_works(gateway, "any", issuer.token(), wrong=issuer.token() + "x")


# Tokens, without a broker


def verified(token: str, **settings: Any) -> Principal | None:
    """Return the principal of a token, with the keys of the settings alone."""
    found = OAuthSettings.model_validate({"resource_server_id": "mq", **settings})
    client: Any = None
    answers: list[Principal | None] = []
    TokenVerifier(found, KeySet(found, client, lambda: 0.0)).verify(token, answers.append)
    (answer,) = answers
    return answer


def signed(claims: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", kid: str = "one") -> str:
    return jwt.encode({"sub": "anna", "aud": "mq", **claims}, key, algorithm, {"kid": kid})


HMAC = {"hmac_keys": {"one": SECRET}, "algorithms": ["HS256"]}


@pytest.mark.parametrize(
    ("claims", "settings", "name"),
    [
        ({}, {}, "anna"),
        ({"exp": 1}, {}, None),
        ({"nbf": 2**40}, {}, None),
        ({"aud": "other"}, {}, None),
        ({"aud": "other"}, {"verify_aud": False}, "anna"),
        ({"iss": "there"}, {"issuer": "here"}, None),
        ({"iss": "here"}, {"issuer": "here"}, "anna"),
        ({"email": "a@example.com"}, {"preferred_username_claims": ["email"]}, "a@example.com"),
        ({"email": 7}, {"preferred_username_claims": ["email"]}, "anna"),
    ],
)
def test_claims_decide_on_a_token(claims: dict[str, Any], settings: dict[str, Any], name: str | None) -> None:
    principal = verified(signed(claims), **HMAC, **settings)
    assert (principal.name if principal else None) == name


def test_only_the_algorithms_of_the_settings_are_accepted() -> None:
    assert verified(signed({}, algorithm="HS512"), **HMAC) is None
    assert verified(jwt.encode({"sub": "anna", "aud": "mq"}, "", "none", {"kid": "one"}), **HMAC) is None


def test_a_public_key_is_not_a_secret() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    settings = {"signing_keys": {"one": pem}, "algorithms": ["ES256", "HS256"]}
    assert verified(signed({}, key, "ES256"), **settings) is not None
    head, claims, _ = signed({}).split(".")
    forged = urlsafe_b64encode(hmac.digest(pem.encode(), f"{head}.{claims}".encode(), hashlib.sha256)).rstrip(b"=")
    assert verified(f"{head}.{claims}.{forged.decode()}", **settings) is None


def test_aliases_stand_for_scopes() -> None:
    principal = verified(
        signed({"roles": ["chief"]}),
        **HMAC,
        additional_scopes_key="roles",
        scope_aliases={"chief": ["mq.tag:administrator"]},
    )
    assert principal is not None
    assert principal.tags == {"administrator"}


def test_the_key_set_is_not_fetched_more_often_than_allowed() -> None:
    fetched: list[str] = []

    class Client(HttpClient):
        def __init__(self) -> None:
            pass

        def request(self, method: str, url: str, form: bytes, answer: Any) -> None:
            fetched.append(url)
            answer(b'{"keys": []}')

    now = [0.0]
    settings = OAuthSettings(resource_server_id="mq", jwks_url="http://here", jwks_min_interval_s=10)
    keys = KeySet(settings, Client(), lambda: now[0])
    answers: list[object] = []
    for at in (0.0, 1.0, 9.0, 10.0):
        now[0] = at
        keys.find("unknown", answers.append)
    assert answers == [None] * 4
    assert len(fetched) == 2


def test_a_withdrawn_key_is_no_longer_accepted_once_the_set_is_fetched_again() -> None:
    issuer, answers = Issuer(), list[bool]()

    class Client(HttpClient):
        def __init__(self) -> None:
            pass

        def request(self, method: str, url: str, form: bytes, answer: Any) -> None:
            answer(issuer.key_set())

    now = [0.0]
    settings = OAuthSettings(resource_server_id="mq", jwks_url="http://here", jwks_refresh_s=60)
    verifier = TokenVerifier(settings, KeySet(settings, Client(), lambda: now[0]))
    token = issuer.token()
    issued = [(0.0, token), (59.0, token)]
    for at, each in issued:
        now[0] = at
        verifier.verify(each, lambda principal: answers.append(principal is not None))
    issuer.rotate()
    for at, each in ((61.0, issuer.token()), (62.0, token)):
        now[0] = at
        verifier.verify(each, lambda principal: answers.append(principal is not None))
    assert answers == [True, True, True, False]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"signing_keys": {"one": "x"}, "hmac_keys": {"one": SECRET}},
        {"hmac_keys": {"one": "short"}},
        {"hmac_keys": {"one": SECRET}, "default_key": "two"},
    ],
)
def test_settings_without_usable_keys_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"keys|default_key|at least"):
        OAuthSettings.model_validate({"resource_server_id": "mq", **settings})
