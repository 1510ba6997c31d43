"""Log entries caused by unauthenticated clients: no secrets, and a bounded number of lines."""

import socket

import pytest

from tests.running import Gateway

SECRETS = [
    pytest.param(b"CONNECT\nlogin:guest\npasscode S3cret-word\n\n\0", id="a passcode without a colon"),
    pytest.param(b"CONNECT\nlogin:guest\npasscode:a\nS3cret-word\n\n\0", id="a passcode of two lines"),
    pytest.param(b"CONNECT\nlogin:S3cret-word\npasscode:a\n\n\0", id="a passcode for a login"),
    pytest.param(b"S3cret-word\n\n\0", id="a passcode for a verb"),
    pytest.param(
        b"CONNECT\nlogin:guest\npasscode:guest\n\n\0S3cret-word\n\n\0", id="a passcode for a verb after the login"
    ),
]


def answer_to(gateway: Gateway, data: bytes) -> bytes:
    """Send these bytes to the STOMP listener; return all answers until it closes the connection."""
    answer = b""
    with socket.create_connection(gateway.addresses["stomp"], timeout=20) as client:
        client.sendall(data)
        while piece := client.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize("data", SECRETS)
def test_secrets_in_the_wrong_place_are_not_logged(gateway: Gateway, data: bytes) -> None:
    gateway.start("log.level=debug")
    assert b"ERROR\n" in answer_to(gateway, data)
    gateway.log_has("connection closed")
    assert "S3cret-word" not in gateway.log


def test_many_refused_logins_with_long_names_write_little(gateway: Gateway) -> None:
    gateway.start("login.max_delay_ms=0")
    name = b"n" * 30_000
    before = len(gateway.log)
    for _ in range(200):
        assert b"Access refused" in answer_to(gateway, b"CONNECT\nlogin:%b\npasscode:x\n\n\0" % name)
    gateway.log_has("authentication refused")
    assert len(gateway.log) - before < 200_000
