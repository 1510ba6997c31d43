"""The memory alarm is cleared when its cause is gone: disconnected clients are noticed and memory is returned."""

import socket
import struct
import threading
from contextlib import suppress

from tests.broker.raw import LOGIN, frame, read_until
from tests.management_client import get
from tests.running import Gateway
from tests.waiting import wait_until

MIB = 2**20
OPENED = b"\x00\x14\x00\x0b"


def has_alarm(gateway: Gateway) -> bool:
    return bool(get(gateway, "nodes")[0]["mem_alarm"])


def connected(gateway: Gateway, channels: int = 1) -> socket.socket:
    peer = socket.create_connection(gateway.addresses["amqp"], timeout=20)
    peer.sendall(LOGIN)
    read_until(peer, OPENED)
    for channel in range(2, channels + 1):
        peer.sendall(frame(b"\x00\x14\x00\x0a\x00", channel))
        read_until(peer, OPENED)
    return peer


def incomplete_message(channel: int, size: int) -> bytes:
    """Return the frames of a publish without its last byte."""
    method = frame(b"\x00\x3c\x00\x28\x00\x00\x00\x04none\x00", channel)
    header = struct.pack(">HHQHB", 60, 0, size, 0x1000, 1)
    parts = [method, struct.pack(">BHI", 2, channel, len(header)) + header + b"\xce"]
    left = size - 1
    while left:
        part = min(left, 130_000)
        parts.append(struct.pack(">BHI", 3, channel, part) + bytes(part) + b"\xce")
        left -= part
    return b"".join(parts)


def message(queue: bytes, body: bytes) -> bytes:
    """Return the frames of a transient message."""
    method = frame(b"\x00\x3c\x00\x28\x00\x00\x00" + bytes((len(queue),)) + queue + b"\x00", 1)
    header = struct.pack(">HHQHB", 60, 0, len(body), 0x1000, 1)
    framed = struct.pack(">BHI", 2, 1, len(header)) + header + b"\xce"
    return method + framed + struct.pack(">BHI", 3, 1, len(body)) + body + b"\xce"


def send_until_blocked(peer: socket.socket, what: bytes, most: int) -> None:
    peer.settimeout(1.5)
    with suppress(TimeoutError):
        for _ in range(most):
            peer.sendall(what)


def test_the_alarm_is_cleared_after_many_messages_are_acknowledged(gateway: Gateway) -> None:
    gateway.start("memory_high_watermark=200MiB")
    publisher, consumer = connected(gateway), connected(gateway)
    consumer.sendall(frame(b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + bytes(4), 1))
    read_until(consumer, b"\x00\x32\x00\x0b")
    consumer.sendall(frame(b"\x00\x3c\x00\x14\x00\x00\x01q\x01c\x00" + bytes(4), 1))
    read = [0]

    def take() -> None:
        while data := consumer.recv(2**20):
            read[0] += len(data)

    reader = threading.Thread(target=take, daemon=True)
    reader.start()
    send_until_blocked(publisher, message(b"q", bytes(10_000)), 25_000)
    wait_until(lambda: has_alarm(gateway), "not raised in time", timeout_s=10)

    def is_cleared_by_acknowledgements() -> bool:
        if not has_alarm(gateway):
            return True
        consumer.sendall(frame(b"\x00\x3c\x00\x50" + bytes(8) + b"\x01", 1))
        return False

    # data that the broker read before the alarm is still delivered
    wait_until(is_cleared_by_acknowledgements, lambda: f"not cleared, {read[0]} bytes delivered", interval_s=0.5)
    publisher.close()
    consumer.shutdown(socket.SHUT_RDWR)
    reader.join(10)


def test_memory_is_returned_to_the_system_after_unfinished_bodies_are_dropped(gateway: Gateway) -> None:
    gateway.start("memory_high_watermark=300MiB", "amqp.heartbeat_s=0", "amqp.max_held_size=1GiB")
    before = gateway.private_memory()
    peers = []
    for _ in range(3):
        peer = connected(gateway, channels=9)
        peers.append(peer)
        peer.settimeout(1.5)
        with suppress(TimeoutError):  # the publisher is blocked
            for channel in range(1, 9):
                peer.sendall(incomplete_message(channel, 15 * MIB))
    assert gateway.private_memory() > before + 200 * MIB
    for peer in peers:
        peer.close()
    # Below half of the watermark no publisher is blocked.
    wait_until(lambda: gateway.private_memory() < 160 * MIB, "not given back in time", timeout_s=15)
    wait_until(lambda: not has_alarm(gateway), "not cleared in time", timeout_s=2)


def test_a_disconnected_client_is_noticed_while_it_is_blocked(gateway: Gateway) -> None:
    gateway.start("memory_high_watermark=150MiB", "amqp.heartbeat_s=0", "amqp.max_held_size=1GiB")
    peer = connected(gateway)
    peer.sendall(frame(b"\x00\x5a\x00\x0a", 1))  # tx.select
    read_until(peer, b"\x00\x5a\x00\x0b")
    send_until_blocked(peer, message(b"none", bytes(100_000)), 5000)
    wait_until(lambda: has_alarm(gateway), "not raised in time", timeout_s=5)
    peer.close()
    wait_until(lambda: not has_alarm(gateway), "not cleared in time", timeout_s=15)
    assert gateway.log_has("client disconnected while it was held back")
