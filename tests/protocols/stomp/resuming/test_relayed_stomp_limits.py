"""The bytes of a STOMP client that a node keeps before its login, and the search for the end of a frame."""

import re
from collections.abc import Iterator

import pytest

from gateway_stomp.resuming import frame_stream
from gateway_stomp.resuming.frame_stream import FrameStream
from gateway_stomp.resuming.relayed_connection import RelayedStompConnection, StompStage
from tests.protocols.stomp.dialogue import frame
from tests.protocols.stomp.resuming.test_relayed_stomp import CONNECT, connected

LIMIT = 4096

TOO_LARGE = [
    pytest.param(b"CONNECT\nlogin:" + b"a" * LIMIT, id="a head without an end"),
    pytest.param(b"CONNECT\ncontent-length:100000\n\nx", id="a long body that has not come"),
    pytest.param(b"CONNECT\n\n" + b"a" * LIMIT, id="a body of unknown length without an end"),
]


@pytest.mark.parametrize("data", TOO_LARGE)
def test_no_more_than_the_limit_is_kept_before_the_login(data: bytes) -> None:
    session = RelayedStompConnection(LIMIT)
    for at in range(0, len(data), 100):
        session.receive_from_client(data[at : at + 100])
    assert session.stage is StompStage.PASSING
    assert session.waiting.take_for_leader() == data, "the leader refuses it"


def test_a_client_that_sends_much_before_its_login_was_answered_is_not_read() -> None:
    session = RelayedStompConnection(LIMIT)
    send = frame("SEND", {"destination": "/queue/q", "receipt": "r"}, b"x" * 3000)
    session.receive_from_client(CONNECT + send)
    assert not session.is_full
    session.receive_from_client(b"SEND\ndestination:/queue/q\ncontent-length:100000\n\n" + b"x" * 2000)
    assert session.is_full
    session.receive_from_leader(connected())
    assert session.stage is StompStage.OPEN
    assert not session.is_full


def test_a_transaction_that_begins_before_the_login_was_answered_counts() -> None:
    session = RelayedStompConnection(LIMIT)
    send = frame("SEND", {"destination": "/queue/q", "transaction": "t"}, b"x" * 3000)
    session.receive_from_client(CONNECT + frame("BEGIN", {"transaction": "t"}) + send + send)
    assert session.is_full
    session.receive_from_leader(connected())
    assert not session.is_full


def test_a_frame_that_comes_byte_by_byte_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    find_end = frame_stream._end_of_frame

    def counted(data: bytes, at: int, head_end: re.Match[bytes]) -> int:
        searches.append(len(data))
        return find_end(data, at, head_end)

    monkeypatch.setattr(frame_stream, "_end_of_frame", counted)
    data = b"SEND\ndestination:/queue/q\n\n" + b"x" * 5000 + b"\0"
    assert list(_cut_by_bytes(FrameStream(), data + data)) == [(27, data), (27, data)]
    assert len(searches) <= 6


def test_ends_of_heads_are_found_wherever_they_are_cut() -> None:
    data = b"SEND\r\ndestination:/queue/q\r\n\r\nbody\0\n\nMESSAGE\nid:1\n\n\0"
    cut = list(_cut_by_bytes(FrameStream(), data))
    assert [frame for size, frame in cut if size] == [data[:35], data[37:]]
    assert b"".join(frame for _, frame in cut) == data


def _cut_by_bytes(stream: FrameStream, data: bytes) -> Iterator[tuple[int, bytes]]:
    for at in range(len(data)):
        yield from stream.cut(data[at : at + 1])
