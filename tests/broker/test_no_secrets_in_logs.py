"""Secrets in every field that clients fill, in valid and invalid places: no log level writes them."""

import json
import socket
from base64 import b64encode
from contextlib import suppress
from typing import Final

import pytest

from tests.broker.raw import HEADER, frame
from tests.running import Gateway

SECRET: Final = "xyzzy-Sesam-4711"
ENCODED: Final = b64encode(f"guest:{SECRET}".encode()).decode()
TAIL: Final = SECRET[3:]


@pytest.fixture
def talking(gateway: Gateway) -> Gateway:
    return gateway.start("log.level=debug", "login.max_delay_ms=0", "mqtt.login_timeout_s=2")


def tell(gateway: Gateway, listener: str, *messages: bytes) -> bytes:
    """Send messages, each after the answer to the last; return all answers until no more arrive."""
    read_until = b""
    with socket.create_connection(gateway.addresses[listener], timeout=0.7) as peer:
        for message in messages:
            with suppress(OSError):
                peer.sendall(message)
                read_until += peer.recv(65536)
        with suppress(OSError):
            while data := peer.recv(65536):
                read_until += data
    return read_until


def amqp_start_ok(mechanism: str, response: bytes) -> bytes:
    method = b"\x00\x0a\x00\x0b" + bytes(4) + bytes((len(mechanism),)) + mechanism.encode()
    return frame(method + len(response).to_bytes(4, "big") + response + b"\x05en_US")


def test_the_log_of_an_amqp_login_has_no_secret(talking: Gateway) -> None:
    field = b"\x08PASSWORDS" + len(SECRET).to_bytes(4, "big") + SECRET.encode()
    responses = [
        ("PLAIN", f"\0guest\0{SECRET}".encode()),
        ("PLAIN", f"guest\0{SECRET}".encode()),
        ("PLAIN", SECRET.encode()),
        ("PLAIN", f"\0{SECRET}\0guest".encode()),
        ("PLAIN", f"\0guest\0{SECRET}\xff".encode("latin-1")),
        ("AMQPLAIN", b"\x05LOGINS\x00\x00\x00\x05guest" + field),
        ("AMQPLAIN", field),
        ("AMQPLAIN", SECRET.encode()),
    ]
    for mechanism, response in responses:
        tell(talking, "amqp", HEADER, amqp_start_ok(mechanism, response))
    tell(talking, "amqp", f"amqp://guest:{SECRET}@host".encode())
    require_silence(talking)


def test_the_log_of_a_stomp_login_has_no_secret(talking: Gateway) -> None:
    frames = [
        f"CONNECT\nlogin:guest\npasscode:{SECRET}\nhost:/\naccept-version:1.2\n\n\0",
        f"CONNECT\nlogin:{SECRET}\npasscode:x\nhost:/\naccept-version:1.2\n\n\0",
        f"CONNECT\nlogin:guest\npasscode {SECRET}\nhost:/\naccept-version:1.2\n\n\0",
        f"CONNECT\nlogin:guest\npasscode:{SECRET}\\x\nhost:/\naccept-version:1.2\n\n\0",
        f"CONNECT\nlogin:guest\npasscode:guest\nhost:/\npassword={SECRET}\naccept-version:1.2\n\n\0",
        f"CONNECT\nlogin:guest\npasscode:{SECRET}\nhost:elsewhere\naccept-version:1.2\n\n\0",
        f"SEND\nlogin:guest\npasscode:{SECRET}\n\n\0",
        f"{SECRET}\n\n\0",
    ]
    for text in frames:
        tell(talking, "stomp", text.encode())
    require_silence(talking)


def mqtt_connect(username: bytes, password: bytes, client_id: bytes = b"c") -> bytes:
    def text(value: bytes) -> bytes:
        return len(value).to_bytes(2, "big") + value

    body = text(b"MQTT") + b"\x04\xc2\x00\x3c" + text(client_id) + text(username) + text(password)
    return b"\x10" + bytes((len(body),)) + body


def test_the_log_of_an_mqtt_login_has_no_secret(talking: Gateway) -> None:
    for packet in (
        mqtt_connect(b"guest", SECRET.encode()),
        mqtt_connect(SECRET.encode(), b"x"),
        mqtt_connect(b"", SECRET.encode()),
        mqtt_connect(b"elsewhere:guest", SECRET.encode()),
        mqtt_connect(b"guest", SECRET.encode() + b"\xff"),
        mqtt_connect(b"guest", SECRET.encode())[:-2] + b"\x00\x00\x00",
    ):
        tell(talking, "mqtt", packet)
    require_silence(talking)


def test_the_log_of_a_web_socket_has_no_secret(talking: Gateway) -> None:
    paths = (f"/ws?password={SECRET}", f"/ws/{SECRET}", f"/?token={SECRET}", f"//guest:{SECRET}@host/ws")
    for listener in ("web_mqtt", "web_stomp"):
        for path in paths:
            for headers in ("", f"Authorization: Basic {ENCODED}\r\n", f"Cookie: passcode={SECRET}\r\n{SECRET}\r\n"):
                head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                with socket.create_connection(talking.addresses[listener], timeout=0.5) as peer, suppress(OSError):
                    peer.sendall(f"{head}{key}{headers}\r\n".encode())
                    peer.recv(4096)
    require_silence(talking)


def test_the_log_of_an_http_request_has_no_secret(talking: Gateway) -> None:
    guest = "Authorization: Basic " + b64encode(b"guest:guest").decode()
    wrong = f"Authorization: Basic {ENCODED}"
    form = f"username=guest&password={SECRET}"
    definitions = json.dumps({"users": [{"name": "u", "password": SECRET, "password_hash": SECRET, "tags": ""}]})
    requests = [
        ("GET", "/api/whoami", [wrong], ""),
        ("GET", "/api/whoami", [f"Authorization: Basic {SECRET}"], ""),
        ("GET", "/api/whoami", [f"Authorization: Bearer {SECRET}"], ""),
        ("GET", f"http://guest:{SECRET}@localhost/api/whoami", [], ""),
        ("GET", f"/api/whoami?password={SECRET}", [guest], ""),
        ("GET", f"/api/auth/hash_password/{SECRET}", [], ""),
        ("POST", "/api/login", [], form),
        ("PUT", "/api/users/u", [guest], json.dumps({"password": SECRET, "tags": ""})),
        ("PUT", "/api/users/u", [guest], json.dumps({"password": [SECRET], "tags": ""})),
        ("PUT", "/api/users/u", [guest], json.dumps({"password_hash": SECRET, "tags": ""})),
        ("POST", "/api/definitions", [guest], definitions),
        ("GET", "/api/whoami", [f"{SECRET}"], ""),
        (SECRET, "/api/whoami", [wrong], ""),
    ]
    for method, path, headers, body in requests:
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {len(body)}"]
        tell(talking, "management", ("\r\n".join(head) + "\r\n\r\n" + body).encode())
    require_silence(talking)


def require_silence(gateway: Gateway) -> None:
    """Assert that no secret is in the log, which must have recorded the event."""
    assert gateway.stop() == 0
    log = gateway.log
    assert "debug" in log or "warning" in log
    for hidden in (SECRET, TAIL, ENCODED, SECRET.encode().hex()):
        assert hidden not in log, next(line for line in log.splitlines() if hidden in line)
    assert "Traceback" not in log, log
