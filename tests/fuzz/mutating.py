"""Mutations of sessions. A session is the sequence of a client's frames; a mutated one is a sequence of writes.

Everything follows from one seed and a number, so that a failing session can be sent again.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeAlias

#: The frames of a client, in order.
Session: TypeAlias = Sequence[bytes]

#: Bytes with a meaning in some protocol, or in none.
TOKENS: Final = (
    b"\0",
    b"\n",
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b":",
    b"\\",
    b"/",
    b"#",
    b"+",
    b"%2F",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x80\x80\x80\x01",
    b"\xce",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"-1",
    b"0",
    b"99999999999999999999",
    b"1e999",
    b"NaN",
    b"true",
    b"{}",
    b"[" * 64,
    b"a" * 300,
    b"\0" * 64,
    b"\xff" * 300,
)

#: Longest mutated session in bytes: it should be unusual, not large.
LARGEST: Final = 256 * 1024


def mutated(sessions: Sequence[Session], seed: str, number: int) -> list[bytes]:
    """Return the writes of the mutated session of this number."""
    random = Random(f"{seed}:{number}")
    frames = list(random.choice(sessions))
    for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
        frames = random.choice(_OF_FRAMES)(random, frames, sessions)
    data = b"".join(frames)[:LARGEST]
    # the first frames are checked most, so half of the changes affect only the later frames
    kept = 0 if random.random() < 0.5 or len(frames) < 2 else len(b"".join(frames[: random.randrange(1, len(frames))]))
    for _ in range(random.choice((0, 1, 1, 2, 4, 8))):
        data = data[:kept] + random.choice(_OF_BYTES)(random, data[kept:])
    return _cut(random, data[:LARGEST])


def _cut(random: Random, data: bytes) -> list[bytes]:
    """Return the data in a few pieces, or in many small ones."""
    if not data:
        return []
    count = random.choice((1, 1, 1, 2, 3, 5, 20))
    ends = sorted({random.randrange(1, len(data) + 1) for _ in range(count - 1)} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


# Frames


def _duplicate(random: Random, frames: list[bytes], sessions: Sequence[Session]) -> list[bytes]:
    at = random.randrange(len(frames)) if frames else 0
    return [*frames[:at], *frames[at : at + 1] * random.choice((2, 2, 3, 50)), *frames[at + 1 :]]


def _drop(random: Random, frames: list[bytes], sessions: Sequence[Session]) -> list[bytes]:
    at = random.randrange(len(frames)) if frames else 0
    return frames[:at] + frames[at + 1 :]


def _swap(random: Random, frames: list[bytes], sessions: Sequence[Session]) -> list[bytes]:
    if len(frames) > 1:
        at = random.randrange(len(frames) - 1)
        frames[at], frames[at + 1] = frames[at + 1], frames[at]
    return frames


def _shuffle(random: Random, frames: list[bytes], sessions: Sequence[Session]) -> list[bytes]:
    first, rest = frames[:1], frames[1:]
    random.shuffle(rest)
    return first + rest


def _splice(random: Random, frames: list[bytes], sessions: Sequence[Session]) -> list[bytes]:
    other = random.choice(sessions)
    return frames[: random.randrange(len(frames) + 1)] + list(other[random.randrange(len(other) + 1) :])


_OF_FRAMES: Final[tuple[Callable[[Random, list[bytes], Sequence[Session]], list[bytes]], ...]] = (
    _duplicate,
    _drop,
    _swap,
    _shuffle,
    _splice,
)


# Bytes


def _flip(random: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _replace(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    token = random.choice(TOKENS)
    return data[:at] + token + data[at + len(token) :]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(TOKENS) * random.choice((1, 1, 1, 4, 200)) + data[at:]


def _noise(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.choice((1, 2, 4, 16, 200))) + data[at:]


def _remove(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at + random.choice((1, 2, 4, 30)) :]


def _repeat(random: Random, data: bytes) -> bytes:
    start = random.randrange(len(data) + 1)
    piece = data[start : start + random.choice((1, 4, 30, 300))]
    return data[:start] + piece * random.choice((2, 10, 100)) + data[start + len(piece) :]


def _truncate(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


_OF_BYTES: Final[tuple[Callable[[Random, bytes], bytes], ...]] = (
    _flip,
    _flip,
    _replace,
    _insert,
    _noise,
    _remove,
    _repeat,
    _truncate,
)
