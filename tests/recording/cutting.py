"""Pieces of bytes, as a network cuts them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from gateway.recording.masking.protocols import masking_parser

#: The lengths of the pieces, repeated until the bytes end.
CUTS = st.lists(st.integers(1, 40), min_size=1, max_size=8)

#: Secrets that cannot stand in the bytes by chance.
SECRETS = st.text("QZ", min_size=12, max_size=30)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        size = cuts[len(found) % len(cuts)]
        found.append(data[at : at + size])
        at += size
    return found


def masked(listener: str, data: bytes, cuts: Sequence[int], *, hides_bodies: bool = True) -> bytes:
    parser = masking_parser(listener, hides_bodies=hides_bodies)
    result = b"".join(parser.feed(piece) for piece in pieces(data, cuts)) + parser.end()
    assert len(result) == len(data)
    return result
