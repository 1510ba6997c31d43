"""Guessed passwords are delayed on every protocol, without harm to authenticated clients."""

import socket
import statistics
import threading
import time
from base64 import b64encode
from http.client import HTTPConnection

from tests.broker.raw import HEADER, frame
from tests.running import Gateway

PROBES = 150


def stomp(gateway: Gateway, passcode: str) -> tuple[socket.socket, bytes]:
    """Connect as guest; return the connection and the first frame, empty if the broker closed the connection."""
    peer = socket.create_connection(gateway.addresses["stomp"], timeout=20)
    peer.sendall(f"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:{passcode}\n\n\0".encode())
    return peer, peer.recv(4096)


def amqp(gateway: Gateway, password: str) -> bytes:
    """Log in as guest; return the method after connection.start."""
    with socket.create_connection(gateway.addresses["amqp"], timeout=20) as peer:
        peer.sendall(HEADER)
        peer.recv(65536)
        response = f"\0guest\0{password}".encode()
        answer = b"\x05PLAIN" + len(response).to_bytes(4, "big") + response
        method = b"\x00\x0a\x00\x0b" + bytes(4) + answer + b"\x05en_US"
        peer.sendall(frame(method))
        return peer.recv(65536)


def http(gateway: Gateway, password: str) -> tuple[int, str]:
    """Request /whoami as guest; return the status and Retry-After."""
    connection = HTTPConnection(*gateway.addresses["management"], timeout=20)
    try:
        authorization = "Basic " + b64encode(f"guest:{password}".encode()).decode()
        connection.request("GET", "/api/whoami", headers={"Authorization": authorization})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Retry-After", "")
    finally:
        connection.close()


def test_guesses_are_delayed_on_every_protocol(gateway: Gateway) -> None:
    gateway.start("login.free_attempts=2", "login.max_delay_ms=1000")
    assert http(gateway, "wrong 1") == (401, "")
    assert amqp(gateway, "wrong 2") == b""
    assert http(gateway, "wrong 3") == (429, "1")
    started = time.monotonic()
    with stomp(gateway, "wrong 4")[0]:
        pass
    with stomp(gateway, "guest")[0] as peer:
        peer.sendall(b"DISCONNECT\n\n\0")
    assert time.monotonic() - started > 0.6, "a quarter, then half a second"
    assert http(gateway, "guest") == (200, ""), "a success resets the count of failures"


def test_a_flood_of_guesses_does_not_affect_authenticated_clients(gateway: Gateway) -> None:
    gateway.from_scratch = True  # the prepared process hashes passwords cheaply
    gateway.start("login.free_attempts=1000", "login.free_attempts_per_address=1000")
    innocent, _ = stomp(gateway, "guest")
    is_over = threading.Event()

    def guess(number: int) -> None:
        count = 0
        while not is_over.is_set():
            count += 1
            stomp(gateway, f"wrong {number} {count}")[0].close()

    guessers = [threading.Thread(target=guess, args=(number,)) for number in range(4)]
    for guesser in guessers:
        guesser.start()
    waits_ms = []
    try:
        for _ in range(PROBES):
            started = time.perf_counter()
            innocent.sendall(b"SEND\ndestination:/topic/x\nreceipt:r\n\n\0")
            assert b"RECEIPT" in innocent.recv(4096)
            waits_ms.append((time.perf_counter() - started) * 1000)
            time.sleep(0.005)  # the pace of the client
    finally:
        is_over.set()
        innocent.close()
        for guesser in guessers:
            guesser.join(20)
    assert statistics.median(waits_ms) < 20, waits_ms
    assert sorted(waits_ms)[int(PROBES * 0.95)] < 100, "one hash takes less than this on any machine"
