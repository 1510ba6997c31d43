"""No byte of a secret is in a recording, however the bytes are cut; what is no secret stays."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame, header
from pamqp.body import ContentBody
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, Request

from gateway.recording.masking.amqp import masked_amqplain, masked_plain
from gateway.recording.masking.http import masked_authorization
from gateway.recording.masking.json_values import masked_json
from tests.recording.cutting import CUTS, SECRETS, masked

PLAIN_RESPONSES = ("PLAIN", "AMQPLAIN", "EXTERNAL", "UNKNOWN")


def short_text(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def long_text(text: str) -> bytes:
    return len(text).to_bytes(4) + text.encode()


def sized(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return len(data).to_bytes(2) + data


def amqp_login(mechanism: str, secret: str) -> bytes:
    responses = {
        "PLAIN": f"\0shop\0{secret}",
        "AMQPLAIN": (
            short_text("LOGIN") + b"S" + long_text("shop") + short_text("PASSWORD") + b"S" + long_text(secret)
        ).decode(),
    }
    start_ok = commands.Connection.StartOk({"product": "a client"}, mechanism, responses.get(mechanism, secret))
    return b"AMQP\0\0\x09\x01" + frame.marshal(start_ok, 0)


@given(st.sampled_from(PLAIN_RESPONSES), SECRETS, CUTS)
def test_a_login_of_amqp_shows_the_user_alone(mechanism: str, secret: str, cuts: list[int]) -> None:
    wire = amqp_login(mechanism, secret) + frame.marshal(commands.Connection.TuneOk(1, 4096, 60), 0)
    shown = masked("amqp", wire, cuts)
    assert secret.encode() not in shown
    assert b"QQQ" not in shown
    assert (b"shop" in shown) is (mechanism in ("PLAIN", "AMQPLAIN"))
    assert shown.endswith(frame.marshal(commands.Connection.TuneOk(1, 4096, 60), 0))


@given(SECRETS, CUTS)
def test_new_secrets_and_answers_to_challenges_of_amqp_are_masked(secret: str, cuts: list[int]) -> None:
    update = frame.marshal(commands.Connection.UpdateSecret(secret, "it expires"), 0)
    answer = frame.marshal(commands.Connection.SecureOk(secret), 0)
    shown = masked("amqps", b"AMQP\0\0\x09\x01" + answer + update, cuts)
    assert secret.encode() not in shown
    assert b"it expires" in shown


@given(SECRETS, CUTS, st.booleans())
def test_bodies_of_amqp_are_masked_unless_they_are_kept(secret: str, cuts: list[int], hides_bodies: bool) -> None:
    properties = header.ContentHeader(0, len(secret), commands.Basic.Properties(headers={"kind": "order"}))
    wire = b"".join(
        frame.marshal(each, 1)
        for each in (commands.Basic.Publish(0, "", "orders"), properties, ContentBody(secret.encode()))
    )
    shown = masked("amqp", b"AMQP\0\0\x09\x01" + wire, cuts, hides_bodies=hides_bodies)
    assert (secret.encode() in shown) is not hides_bodies
    assert b"orders" in shown
    assert b"order" in shown


def mqtt_packet(kind: int, flags: int, body: bytes) -> bytes:
    size = b""
    left = len(body)
    while True:
        size += bytes((left & 0x7F | (0x80 if left > 0x7F else 0),))
        left >>= 7
        if not left:
            return bytes((kind << 4 | flags,)) + size + body


def mqtt_connect(version: int, secret: str) -> bytes:
    name = "MQIsdp" if version == 3 else "MQTT"
    method = b"\x15" + sized("SCRAM") + b"\x16" + sized(secret) + b"\x26" + sized("kind") + sized(secret)
    properties = bytes((len(method),)) + method if version == 5 else b""
    will = (b"\0" if version == 5 else b"") + sized("will/topic") + sized(secret)
    head = sized(name) + bytes((version, 0xC4)) + b"\0\x3c" + properties
    return mqtt_packet(1, 0, head + sized("client-1") + will + sized("shop") + sized(secret))


@given(st.sampled_from((3, 4, 5)), SECRETS, CUTS)
def test_a_login_of_mqtt_shows_the_user_and_no_secret(version: int, secret: str, cuts: list[int]) -> None:
    shown = masked("mqtt", mqtt_connect(version, secret), cuts)
    assert secret.encode() not in shown
    assert all(part in shown for part in (b"client-1", b"will/topic", b"shop"))


@given(SECRETS, CUTS)
def test_authentication_data_of_mqtt_is_masked(secret: str, cuts: list[int]) -> None:
    properties = b"\x15" + sized("SCRAM") + b"\x16" + sized(secret)
    auth = mqtt_packet(15, 0, b"\x18" + bytes((len(properties),)) + properties)
    shown = masked("mqtts", mqtt_connect(5, secret) + auth, cuts)
    assert secret.encode() not in shown
    assert shown.endswith(b"SCRAM\x16" + sized("x" * len(secret)))


@given(SECRETS, CUTS, st.booleans())
def test_payloads_of_mqtt_are_masked_unless_they_are_kept(secret: str, cuts: list[int], hides_bodies: bool) -> None:
    publish = mqtt_packet(3, 2, sized("a/b") + b"\0\1" + b"\0" + secret.encode())
    shown = masked("mqtt", mqtt_connect(5, "unused") + publish, cuts, hides_bodies=hides_bodies)
    assert (secret.encode() in shown) is not hides_bodies
    assert b"a/b" in shown


@given(SECRETS, CUTS, st.sampled_from(("\n", "\r\n")), st.sampled_from(("CONNECT", "STOMP")))
def test_a_login_of_stomp_shows_the_user_and_no_passcode(secret: str, cuts: list[int], end: str, verb: str) -> None:
    lines = (verb, "accept-version:1.2", f"passcode:{secret}", f"x-token:{secret}", "login:shop", "host:/", "", "\0")
    shown = masked("stomp", end.join(lines).encode(), cuts)
    assert secret.encode() not in shown
    assert b"login:shop" in shown


@given(SECRETS, CUTS, st.booleans(), st.booleans())
def test_bodies_of_stomp_are_masked_unless_they_are_kept(
    secret: str, cuts: list[int], hides_bodies: bool, has_length: bool
) -> None:
    length = f"content-length:{len(secret)}\n" if has_length else ""
    frames = f"CONNECT\nlogin:shop\n\n\0\nSEND\ndestination:/queue/a\n{length}\n{secret}\0ACK\nid:7\n\n\0"
    shown = masked("stomp", frames.encode(), cuts, hides_bodies=hides_bodies)
    assert (secret.encode() in shown) is not hides_bodies
    assert shown.endswith(b"ACK\nid:7\n\n\0")


@given(SECRETS, CUTS)
def test_credentials_cookies_and_bodies_of_http_are_masked(secret: str, cuts: list[int]) -> None:
    body = f'{{"password": "{secret}", "durable": true, "number": 123}}'
    request = (
        f"PUT /api/users/shop?name=a&access_token={secret} HTTP/1.1\r\nHost: here\r\n"
        f"Authorization: Basic {b64encode(f'admin:{secret}'.encode()).decode()}\r\nCookie: auth={secret}\r\n"
        f"X-Anything: {secret}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        f"GET /api/auth/hash_password/{secret} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n\r\n"
        f"POST /api/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{len(secret):x}\r\n{secret}\r\n0\r\n\r\n"
        "GET /api/whoami HTTP/1.1\r\n\r\n"
    )
    shown = masked("management", request.encode(), cuts)
    assert secret.encode() not in shown
    assert b64encode(secret.encode())[:-4] not in shown
    assert b64encode(f"admin:{'x' * len(secret)}".encode()) in shown
    assert b'"durable": true' in shown
    assert shown.endswith(b"0\r\n\r\nGET /api/whoami HTTP/1.1\r\n\r\n")


@given(SECRETS, CUTS, st.sampled_from(("web_mqtt", "web_stomp")))
def test_logins_over_websocket_are_masked_inside_their_frames(secret: str, cuts: list[int], listener: str) -> None:
    plain = listener.removeprefix("web_")
    inner = mqtt_connect(5, secret) if plain == "mqtt" else f"CONNECT\nlogin:a\npasscode:{secret}\n\n\0".encode()
    client, server = WSConnection(ConnectionType.CLIENT), WSConnection(ConnectionType.SERVER)
    head = client.send(Request(host="here", target=f"/ws?token={secret}", subprotocols=[plain]))
    server.receive_data(head)
    list(server.events())
    client.receive_data(server.send(AcceptConnection(subprotocol=plain)))
    list(client.events())
    middle = len(inner) // 2
    wire = head + client.send(BytesMessage(inner[:middle])) + client.send(BytesMessage(inner[middle:]))
    shown = masked(listener, wire, cuts)
    assert secret.encode() not in shown
    at = shown.index(b"\r\n\r\n") + 4
    server.receive_data(shown[at:])
    received = b"".join(bytes(event.data) for event in server.events() if isinstance(event, BytesMessage))
    assert received == masked(plain, inner, [1])
    assert secret.encode() not in received


@given(st.binary(max_size=300), CUTS, st.sampled_from(("amqp", "mqtt", "stomp", "management", "web_stomp")))
def test_any_bytes_are_masked_to_as_many_the_same_for_every_cut(data: bytes, cuts: list[int], listener: str) -> None:
    assert masked(listener, data, cuts) == masked(listener, data, [len(data) + 1])


@given(SECRETS, CUTS, st.sampled_from(("amqp", "mqtt", "stomp")))
def test_another_protocol_at_a_port_is_hidden(secret: str, cuts: list[int], listener: str) -> None:
    request = f"GET /{secret} HTTP/1.1\r\nAuthorization: Bearer {secret}\r\n\r\n"
    assert b"QQQ" not in masked(listener, request.encode(), cuts)


@pytest.mark.parametrize(
    ("response", "shown"),
    [
        (b"\0shop\0pass", b"\0shop\0xxxx"),
        (b"\0shop\0pa\0ss", b"\0shop\0xxxxx"),
        (b"other\0shop\0pass", b"x" * 15),
        (b"\0only", b"xxxxx"),
        (b"", b""),
    ],
)
def test_a_response_of_plain(response: bytes, shown: bytes) -> None:
    assert masked_plain(response) == shown


def test_a_field_of_amqplain_that_is_unknown_is_hidden_with_all_after_it() -> None:
    login = short_text("LOGIN") + b"S" + long_text("shop")
    assert masked_amqplain(login + b"\x05OTHERS\0\0\0\1a") == login + b"x" * 12


@pytest.mark.parametrize("value", [b" Bearer abc\r\n", b" Basic !!\r\n", b" Basic YWJj\r\n", b" abc\n"])
def test_an_authorization_that_is_not_basic_is_hidden(value: bytes) -> None:
    assert masked_authorization(value).strip(b" \r\nBasicxX") == b""
    assert len(masked_authorization(value)) == len(value)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"type":"quorum","secret":"abc","n":-12}', b'{"type":"quorum","secret":"xxx","n":111}'),
        (b'{"arguments":{"x-queue-type":"stream","y":[true,null,"ab\\"c"]}}', None),
        (b"not json", b"xxxxxxxx"),
        (b'"text"', b'"xxxx"'),
    ],
)
def test_json_keeps_its_structure(body: bytes, shown: bytes | None) -> None:
    expected = shown if shown is not None else body.replace(b'ab\\"c', b"xxxxx")
    assert masked_json(body) == expected
