"""Packet types, the first four bits of every packet (2.1.2)."""

from enum import IntEnum


class PacketType(IntEnum):
    """A packet type. ``WILL`` is not one: the reserved 0 stands for the Will Properties inside a CONNECT."""

    WILL = 0
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


def name_of(first: int) -> str:
    """Return the name of a packet, given its first byte."""
    return PacketType(first >> 4).name if first >> 4 else "packet type 0"
