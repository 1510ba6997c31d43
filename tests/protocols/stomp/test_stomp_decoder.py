"""Decoder of frames: bytes cut anywhere, malformed frames, and limits of size."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_stomp.decoder import FrameDecoder
from gateway_stomp.errors import StompError
from gateway_stomp.versions import Version
from tests.protocols.stomp.dialogue import frame

LIMIT, HEADERS_LIMIT, COUNT_LIMIT = 2000, 500, 10

#: Verb, headers, body: the values that a decoder yields.
Frames = list[tuple[str, dict[str, str], bytes]]


def decoder(version: Version | None = Version.V12) -> FrameDecoder:
    decoder = FrameDecoder(LIMIT, HEADERS_LIMIT, COUNT_LIMIT, HEADERS_LIMIT, 2**22)
    decoder.version = version
    return decoder


def decoded(pieces: Iterable[bytes], version: Version | None = Version.V12) -> tuple[Frames, str]:
    """Return the frames in the pieces, and the text of the error that ended them, empty for none."""
    ours, frames = decoder(version), Frames()
    try:
        for piece in pieces:
            for head, body in ours.feed(piece):
                frames.append((head.verb, dict(head.headers), body))
    except StompError as error:
        return frames, error.message
    return frames, ""


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut at these positions, modulo the length of the data."""
    bounds = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(bounds)]


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
HEADERS = st.dictionaries(NAMES.filter(lambda name: name != "content-length"), NAMES, max_size=4)
SENDS = st.tuples(st.sampled_from(["SEND", "MESSAGE", "ERROR"]), HEADERS, st.binary(max_size=60))
PLACES = st.lists(st.integers(0, 2000), max_size=12)


@given(sends=st.lists(SENDS, max_size=5), places=PLACES)
def test_encoded_frames_are_decoded_wherever_the_bytes_are_cut(
    sends: list[tuple[str, dict[str, str], bytes]], places: list[int]
) -> None:
    wire = b"\n".join(frame(*send) for send in sends)
    read, error = decoded(cut(wire, places))
    assert not error
    for (verb, headers, body), (verb_read, headers_read, body_read) in zip(sends, read, strict=True):
        length = {"content-length": str(len(body))} if body else {}
        assert (verb_read, headers_read, body_read) == (verb, headers | length, body)


#: Valid and invalid parts of frames.
MORSELS = st.lists(
    st.sampled_from(
        (
            *(b"SEND", b"\n", b"\r\n", b"\n\n", b"\0", b":", b"a:b\n", b"\\c", b"\\t", b"\xff", b"x" * 600, b"abc"),
            *(b"content-length:3\n", b"content-length:x\n", b"content-length:9999\n", b"SUBSCRIBE\nid:1\n\n\0"),
        )
    ),
    max_size=30,
).map(b"".join)


@given(data=MORSELS | st.binary(max_size=300), places=PLACES, version=st.sampled_from([None, *Version]))
def test_any_bytes_are_decoded_equally_wherever_they_are_cut(
    data: bytes, places: list[int], version: Version | None
) -> None:
    whole, pieces = decoded([data], version), decoded(cut(data, places), version)
    assert pieces[0] == whole[0]
    assert bool(pieces[1]) == bool(whole[1])


@pytest.mark.parametrize(
    ("wire", "frames"),
    [
        pytest.param(b"SEND\na:b\n\nhi\0", [("SEND", {"a": "b"}, b"hi")], id="the body ends at the NUL"),
        pytest.param(
            b"SEND\ncontent-length:3\n\na\0b\0", [("SEND", {"content-length": "3"}, b"a\0b")], id="a NUL inside a body"
        ),
        pytest.param(b"SEND\r\na:b\r\n\r\nhi\0", [("SEND", {"a": "b"}, b"hi")], id="carriage returns"),
        pytest.param(b"SEND\r\n\r\nx\n\ny\0", [("SEND", {}, b"x\n\ny")], id="an empty line in the body"),
        pytest.param(b"\n\n\r\nBEGIN\n\n\0\n\nABORT\n\n\0", [("BEGIN", {}, b""), ("ABORT", {}, b"")], id="heart-beats"),
        pytest.param(b"BEGIN\n\n\0\0\0ABORT\n\n\0", [("BEGIN", {}, b""), ("ABORT", {}, b"")], id="NULs between frames"),
        pytest.param(b"SEND\na:1\na:2\n\n\0", [("SEND", {"a": "1"}, b"")], id="of repeated headers the first counts"),
        pytest.param(b"SEND\na:b:c\n\n\0", [("SEND", {"a": "b:c"}, b"")], id="a colon in a value"),
        pytest.param(b"SEND\na:\n\n\0", [("SEND", {"a": ""}, b"")], id="an empty value"),
        pytest.param(
            b"SEND\n\\ca\\n:\\\\\\r\n\n\0", [("SEND", {":a\n": "\\\r"}, b"")], id="escapes in names and values"
        ),
        pytest.param("SEND\nä:ö\n\n\0".encode(), [("SEND", {"ä": "ö"}, b"")], id="UTF-8"),
        pytest.param(b"SEND\n\nno end", [], id="not whole"),
    ],
)
def test_well_formed_frames_are_decoded(wire: bytes, frames: Frames) -> None:
    assert decoded([wire]) == (frames, "")


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        pytest.param(b"SEND\nab\n\n\0", "Invalid frame", id="a header without a colon"),
        pytest.param(b"SEND\n:b\n\n\0", "Invalid frame", id="a header without a name"),
        pytest.param(b"SEND\na:\xff\n\n\0", "Invalid frame", id="not UTF-8"),
        pytest.param(b"SEND\na:b\0SEND\n\n\0", "Invalid frame", id="an end before the empty line"),
        pytest.param(b"SEND\na:\\t\n\n\0", "Invalid header", id="an undefined escape"),
        pytest.param(b"SEND\na:b\\\n\n\0", "Invalid header", id="an incomplete escape"),
        pytest.param(b"SEND\ncontent-length:2\n\nabc\0", "Invalid frame", id="no NUL behind the body"),
        pytest.param(b"SEND\ncontent-length:-1\n\n\0", "Invalid frame", id="a negative length"),
        pytest.param(b"SEND\ncontent-length:1.5\n\n\0", "Invalid frame", id="a length that is not a number"),
        pytest.param(b"SEND\ncontent-length:2000\n\n", "Frame too large", id="a length beyond the limit"),
        pytest.param(b"SEND\n\n" + b"x" * LIMIT, "Frame too large", id="a body without end"),
        pytest.param(b"SEND\n\n" + b"x" * LIMIT + b"\0", "Frame too large", id="a body too large"),
        pytest.param(b"SEND\na:" + b"x" * HEADERS_LIMIT, "Invalid frame", id="headers without end"),
        pytest.param(b"SEND\n" + b"a:b\n" * 11 + b"\n\0", "Invalid frame", id="too many headers"),
    ],
)
def test_a_malformed_frame_is_refused(wire: bytes, message: str) -> None:
    assert decoded([wire]) == ([], message)


@pytest.mark.parametrize(
    ("version", "value"),
    [
        pytest.param(Version.V10, "a\\nb\\c", id="1.0 has no escapes"),
        pytest.param(None, "a\\nb\\c", id="nothing is escaped before the version is negotiated"),
        pytest.param(Version.V11, "a\nb:", id="1.1"),
        pytest.param(Version.V12, "a\nb:", id="1.2"),
    ],
)
def test_escapes_depend_on_the_version(version: Version | None, value: str) -> None:
    assert decoded([b"SEND\nx:a\\nb\\c\n\n\0"], version) == ([("SEND", {"x": value}, b"")], "")


def test_a_carriage_return_is_escaped_in_1_2_alone() -> None:
    assert decoded([b"SEND\nx:\\r\n\n\0"], Version.V11) == ([], "Invalid header")
    assert decoded([b"SEND\nx:\\r\n\n\0"], Version.V12) == ([("SEND", {"x": "\r"}, b"")], "")


def test_leading_spaces_of_a_value_are_part_of_it_since_1_1() -> None:
    assert decoded([b"SEND\nx: 1\n\n\0"], Version.V10)[0] == [("SEND", {"x": "1"}, b"")]
    assert decoded([b"SEND\nx: 1\n\n\0"], Version.V11)[0] == [("SEND", {"x": " 1"}, b"")]


def test_a_connect_is_never_escaped() -> None:
    assert decoded([b"CONNECT\npasscode:a\\cb\n\n\0"])[0] == [("CONNECT", {"passcode": "a\\cb"}, b"")]


def test_a_repeated_head_is_not_decoded_again() -> None:
    ours = decoder()
    (first, _), (second, _) = ours.feed(frame("SEND", {"a": "b"}) * 2)
    assert first is second


def test_heads_with_unique_values_are_not_cached() -> None:
    ours = decoder()
    (first, _), (second, _) = ours.feed(frame("SEND", {"receipt": "1"}) * 2)
    assert first is not second


def test_input_after_stop_waits() -> None:
    ours = decoder()
    read = []
    for head, _ in ours.feed(frame("BEGIN") + frame("ABORT")):
        read.append(head.verb)
        ours.stop()
    assert read == ["BEGIN"]
    assert list(ours.feed(frame("COMMIT"))) == []
    assert ours.kept == len(frame("ABORT") + frame("COMMIT"))
    ours.go_on()
    assert [head.verb for head, _ in ours.feed(b"")] == ["ABORT", "COMMIT"]
    assert not ours.kept


def test_a_large_body_in_small_reads_is_joined_once() -> None:
    ours = FrameDecoder(2**22, HEADERS_LIMIT, COUNT_LIMIT, HEADERS_LIMIT, 2**22)
    body = b"x" * 2**21
    wire = b"SEND\n\n" + body + b"\0"
    pieces = [wire[start : start + 100] for start in range(0, len(wire), 100)]
    copied = 0
    for piece in pieces[:-1]:
        assert not list(ours.feed(piece))
        copied += ours.kept - len(piece) if len(ours._pieces) == 1 else 0
    assert copied == 0
    ((_, read),) = ours.feed(pieces[-1])
    assert read == body


def test_the_size_of_a_frame_of_which_a_part_was_received_is_known() -> None:
    """Reads of large frames grow by it."""
    ours = decoder()
    data = b"SEND\ndestination:d\ncontent-length:1500\n\n" + bytes(1500) + b"\0"
    assert ours.awaited == 0
    assert list(ours.feed(data[:100])) == []
    assert ours.awaited == len(data)
    assert list(ours.feed(data[100:1000])) == []
    assert ours.awaited == len(data)
    assert len(list(ours.feed(data[1000:]))) == 1
    assert ours.awaited == 0
