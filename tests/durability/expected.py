"""Messages determined by publisher and number, and the messages that a queue must contain after a crash."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from pika import BasicProperties

#: Body sizes, used cyclically, and large ones that just fit a frame of the default 131072 bytes, or need several.
SIZES: Final = (0, 12, 100, 1_000, 12, 4_000, 100)
LARGE_SIZES: Final = (131_064, 131_065, 300_000)
LARGE_EVERY: Final = 40


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The publisher and number of a message. Written to ``message_id``."""

    publisher: str
    number: int

    @classmethod
    def of(cls, properties: BasicProperties) -> "Key":
        """Return the key of a message from its properties."""
        publisher, _, number = str(properties.message_id).rpartition("-")
        return cls(publisher, int(number))

    def __str__(self) -> str:
        return f"{self.publisher}-{self.number}"


@lru_cache(maxsize=4096)
def body(key: Key) -> bytes:
    """Return the body of a message: all are distinct, except empty ones."""
    turn, is_small = divmod(key.number, LARGE_EVERY)
    size = SIZES[key.number % len(SIZES)] if is_small else LARGE_SIZES[turn % len(LARGE_SIZES)]
    seed = f"{key} ".encode()
    return (seed * (size // len(seed) + 1))[:size]


def properties(key: Key) -> BasicProperties:
    """Return the properties of a message: persistent, with one value of each type."""
    return BasicProperties(
        message_id=str(key),
        delivery_mode=2,
        content_type="application/octet-stream",
        correlation_id=f"c{key.number % 7}",
        priority=key.number % 10,
        timestamp=1_700_000_000 + key.number,
        headers={
            "number": key.number,
            "half": Decimal(key.number) / 2,
            "names": [key.publisher, "ö"],
            "nested": {"at": datetime(2026, 1, 2, tzinfo=UTC), "yes": True},
        },
    )


@dataclass(slots=True)
class ExpectedMessages:
    """The expected content of one queue. Written by the threads of one load, read after they have ended.

    ``sent`` may be in the queue, ``required`` must, ``settling`` may have been removed, ``removed`` must not be.
    """

    sent: set[Key] = field(default_factory=set)
    required: set[Key] = field(default_factory=set)
    settling: set[Key] = field(default_factory=set)
    removed: set[Key] = field(default_factory=set)

    def audit(self, found: Iterable[Key]) -> None:
        """Check the content of a queue after a start, in order; it is required from then on."""
        keys = list(found)
        held = set(keys)
        assert len(held) == len(keys), "a message is in the queue twice"
        assert not (lost := self.required - self.settling - self.removed - held), (
            f"confirmed but lost: {sorted(lost)[:5]}"
        )
        assert not (back := self.removed & held), f"acknowledged but back: {sorted(back)[:5]}"
        assert not (strange := held - self.sent), f"never sent: {sorted(strange)[:5]}"
        for publisher in {key.publisher for key in held}:
            numbers = [key.number for key in keys if key.publisher == publisher]
            assert numbers == sorted(numbers), f"the messages of {publisher} are out of order"
        self.removed |= self.settling - held
        self.required = held
        self.settling = set()
