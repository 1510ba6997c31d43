"""``$SYS/broker`` topics of a whole gateway, published by the reactor's clock or disabled."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.version import VERSION
from tests.broker.raw import read_until
from tests.protocols.mqtt.packets import FOUR
from tests.running import Gateway

CONNACK = b"\x20\x02\x00\x00"


@contextmanager
def subscribed(gateway: Gateway, filter: str) -> Iterator[socket.socket]:
    """Connect, subscribe, and wait for the retained messages."""
    with socket.create_connection(gateway.addresses["mqtt"], timeout=10) as line:
        line.sendall(FOUR.connect("curious"))
        read_until(line, CONNACK)
        line.sendall(FOUR.subscribe((filter, 0)))
        yield line


def test_sys_topics_are_published_at_the_start_and_at_each_interval(gateway: Gateway) -> None:
    gateway.start("mqtt.sys_interval_s=1")
    with subscribed(gateway, "$SYS/broker/version") as line:
        read_until(line, f"gateway version {VERSION}".encode())
    with subscribed(gateway, "$SYS/broker/clients/total") as line:
        read_until(line, FOUR.publish("$SYS/broker/clients/total", b"1"))


def test_sys_topics_can_be_disabled(gateway: Gateway) -> None:
    gateway.start("mqtt.sys_interval_s=0")
    with subscribed(gateway, "$SYS/#") as line:
        read_until(line, b"\x90\x03\x00\x01\x00")
        line.sendall(FOUR.pingreq())
        assert read_until(line, b"\xd0\x00") == b"\xd0\x00"
