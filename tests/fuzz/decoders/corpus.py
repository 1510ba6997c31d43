"""The corpus: bytes recorded from real clients, and inputs of earlier findings.

``tests/fuzz/corpus/PROTOCOL/CLIENT.txt`` has one frame a line: its direction, ``>`` to the broker or ``<`` to the
client, and its bytes, printable ones as they are. ``python -m tests.fuzz.recording`` writes these files anew.
``tests/fuzz/regressions/TARGET/`` has one input a file; the file's name says what was wrong.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.fuzz.decoders.target import Target

CORPUS: Final = Path(__file__).parent.parent / "corpus"
REGRESSIONS: Final = Path(__file__).parent.parent / "regressions"

TO_BROKER: Final = ">"
TO_CLIENT: Final = "<"

_ESCAPE: Final = re.compile(rb"\\x([0-9a-f]{2})")


@cache
def frames_of(protocol: str, direction: str = "") -> tuple[bytes, ...]:
    """Return the recorded frames of a protocol, those of one direction or all."""
    found = {}
    for path in sorted((CORPUS / protocol).glob("*.txt")):
        for line in path.read_text(encoding="ascii").splitlines():
            if not direction or line.startswith(direction):
                found[unescaped(line[2:])] = None
    return tuple(found)


@cache
def sessions_of(protocol: str) -> tuple[tuple[bytes, ...], ...]:
    """Return what each client sent to the broker, frame by frame."""
    return tuple(
        tuple(unescaped(line[2:]) for line in path.read_text(encoding="ascii").splitlines() if line[0] == TO_BROKER)
        for path in sorted((CORPUS / protocol).glob("*.txt"))
    )


def regressions_of(target: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of the inputs of earlier findings."""
    for path in sorted((REGRESSIONS / target).glob("*")):
        yield path.name, path.read_bytes()


def inputs_of(target: Target) -> list[bytes]:
    """Return the inputs of a target to begin with: its seeds, those of the corpus included, and its regressions."""
    inputs = dict.fromkeys(seed[: target.longest] for seed in target.seeds())
    inputs |= dict.fromkeys(data for _, data in regressions_of(target.name))
    return list(inputs)


def escaped(frame: bytes) -> str:
    """Write a frame as one line: printable ASCII as it is, a backslash and all else as hexadecimal escapes."""
    return "".join(chr(octet) if 32 <= octet < 127 and octet != 92 else f"\\x{octet:02x}" for octet in frame)


def unescaped(line: str) -> bytes:
    """Return the frame of a line."""
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), line.encode("ascii"))


def written(frames: Iterable[tuple[str, bytes]]) -> str:
    """Write frames, each with its direction, as a file of the corpus."""
    return "".join(f"{direction} {escaped(frame)}\n" for direction, frame in frames)
