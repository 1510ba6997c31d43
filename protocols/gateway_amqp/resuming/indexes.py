"""Class and method of the methods that a relay knows, as they are on the wire, and the answers to requests."""

from collections.abc import Mapping
from typing import Final


def _index(class_id: int, method_id: int) -> bytes:
    return class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big")


START_OK: Final = _index(10, 11)
TUNE: Final = _index(10, 30)
TUNE_OK: Final = _index(10, 31)
OPEN: Final = _index(10, 40)
OPEN_OK: Final = _index(10, 41)
CLOSE: Final = _index(10, 50)
CLOSE_OK: Final = _index(10, 51)
BLOCKED: Final = _index(10, 60)
UNBLOCKED: Final = _index(10, 61)
UPDATE_SECRET: Final = _index(10, 70)
UPDATE_SECRET_OK: Final = _index(10, 71)

CHANNEL_OPEN: Final = _index(20, 10)
CHANNEL_CLOSE: Final = _index(20, 40)
CHANNEL_CLOSE_OK: Final = _index(20, 41)

PUBLISH: Final = _index(60, 40)
RETURN: Final = _index(60, 50)
DELIVER: Final = _index(60, 60)
GET_OK: Final = _index(60, 71)
ACK: Final = _index(60, 80)
REJECT: Final = _index(60, 90)
NACK: Final = _index(60, 120)
CANCEL: Final = _index(60, 30)

#: The answers to each request of a client on a channel, by the request. ``channel.close`` is not among them.
ANSWERS: Final[Mapping[bytes, tuple[bytes, ...]]] = {
    CHANNEL_OPEN: (_index(20, 11),),
    _index(20, 20): (_index(20, 21),),  # channel.flow
    _index(30, 10): (_index(30, 11),),  # access.request
    _index(40, 10): (_index(40, 11),),  # exchange.declare
    _index(40, 20): (_index(40, 21),),
    _index(40, 30): (_index(40, 31),),
    _index(40, 40): (_index(40, 51),),
    _index(50, 10): (_index(50, 11),),  # queue.declare
    _index(50, 20): (_index(50, 21),),
    _index(50, 30): (_index(50, 31),),
    _index(50, 40): (_index(50, 41),),
    _index(50, 50): (_index(50, 51),),
    _index(60, 10): (_index(60, 11),),  # basic.qos
    _index(60, 20): (_index(60, 21),),
    CANCEL: (_index(60, 31),),
    _index(60, 70): (GET_OK, _index(60, 72)),
    _index(60, 110): (_index(60, 111),),  # basic.recover
    _index(85, 10): (_index(85, 11),),  # confirm.select
    _index(90, 10): (_index(90, 11),),  # tx.select
    _index(90, 20): (_index(90, 21),),
    _index(90, 30): (_index(90, 31),),
}
