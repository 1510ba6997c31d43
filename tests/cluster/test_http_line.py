"""Requests to a leader over one connection: one after the other, in pieces, and with its end."""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.net.forwarding.link import LeaderSide
from gateway.node.cluster.http_line import HttpLine
from gateway.testing.clock import FakeClock

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


class Wire:
    """The transport of a connection to the leader."""

    def __init__(self) -> None:
        self.written = b""
        self.is_aborted = self.is_paused = False

    def write(self, data: bytes) -> None:
        self.written += data

    def pauseProducing(self) -> None:
        self.is_paused = True

    def resumeProducing(self) -> None:
        self.is_paused = False

    def abortConnection(self) -> None:  # noqa: N802 - Twisted's name
        self.is_aborted = True


class Told:
    """Notes the status, the body and the end of an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.end = ""

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        self.status = status

    def piece(self, data: bytes) -> None:
        self.body += data

    def ended(self) -> None:
        self.end += "ended"

    def failed(self, reason: str) -> None:
        self.end += reason


class Line:
    """A line to a leader that has taken the connection."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.wire = Wire()
        self.side = LeaderSide(self.clock, lambda size: None, b"", lambda is_taken: None)
        side: Any = self.side
        side.transport = self.wire
        self.losses = 0
        self.http = HttpLine(self.side, self.clock, self.lost)

    def lost(self) -> None:
        self.losses += 1

    def ask(self, path: str = "/a", content: bytes = b"") -> Told:
        told = Told()
        self.http.ask("GET", path, [("Host", "here")], content, told)
        return told


@pytest.fixture
def line() -> Line:
    return Line()


def test_requests_follow_each_other_on_one_connection(line: Line) -> None:
    for path in ("/a", "/b"):
        told = line.ask(path)
        for at in range(len(OK)):
            line.side.dataReceived(OK[at : at + 1])
        assert (told.status, told.body, told.end) == (200, b"hello", "ended")
    assert line.wire.written.count(b"GET /") == 2
    assert b"Content-Length" not in line.wire.written
    assert not line.http.is_lost


def test_a_request_may_follow_from_inside_the_end_of_an_answer(line: Line) -> None:
    first, second = line.ask("/a"), Told()

    def ask_again() -> None:
        line.http.ask("POST", "/b", [("Host", "here")], b"body", second)

    first.ended = ask_again  # type: ignore[method-assign]
    line.side.dataReceived(OK)
    assert line.wire.written.endswith(b"body")
    line.side.dataReceived(OK)
    assert second.end == "ended"


def test_a_leader_that_closes_after_its_answer_gets_no_more_requests(line: Line) -> None:
    told = line.ask()
    line.side.dataReceived(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert told.end == "ended"
    assert (line.http.is_lost, line.losses) == (True, 1)
    line.side.leaving()
    assert line.losses == 1


def test_headers_beyond_ascii_are_sent_in_utf_8(line: Line) -> None:
    line.http.ask("GET", "/a", [("Host", "here"), ("User-Agent", "é")], b"", Told())
    assert b"User-Agent: \xc3\xa9\r\n" in line.wire.written


@pytest.mark.parametrize("received", [b"", OK[:-1], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"])
def test_an_answer_fails_with_the_connection(line: Line, received: bytes) -> None:
    told = line.ask()
    if received:
        line.side.dataReceived(received)
    assert line.side.leaving()
    assert told.end not in ("", "ended")
    assert (line.http.is_lost, line.losses) == (True, 1)
    line.side.leaving()
    assert line.losses == 1


def test_an_answer_without_a_length_ends_with_the_connection(line: Line) -> None:
    told = line.ask()
    line.side.dataReceived(b"HTTP/1.1 200 OK\r\n\r\nhello")
    line.side.leaving()
    assert (told.body, told.end, line.losses) == (b"hello", "ended", 1)


def test_a_silent_leader_is_given_up_but_not_while_the_client_reads_slowly(line: Line) -> None:
    told = line.ask()
    line.http.pause()
    line.clock.advance(100)
    assert (told.end, line.wire.is_paused) == ("", True)
    line.http.resume()
    line.clock.advance(59)
    assert told.end == ""
    line.clock.advance(2)
    assert told.end == "it says nothing more"
    assert line.wire.is_aborted


def test_the_next_answer_comes_after_one_that_ended_while_the_client_read_slowly(line: Line) -> None:
    told = line.ask()

    def piece(data: bytes) -> None:
        line.http.pause()

    told.piece = piece  # type: ignore[method-assign]
    line.side.dataReceived(OK)
    assert told.end == "ended"
    assert not line.wire.is_paused


def test_a_line_without_a_request_is_not_paused(line: Line) -> None:
    line.http.pause()
    assert not line.wire.is_paused


def test_a_request_on_a_lost_line_fails_in_the_next_turn(line: Line) -> None:
    line.side.leaving()
    told = line.ask()
    line.http.pause()
    assert told.end == ""
    line.clock.advance(0)
    assert told.end == "the connection to it was lost"
    assert (line.wire.written, line.losses) == (b"", 1)


def test_a_request_on_a_lost_line_can_be_cancelled(line: Line) -> None:
    line.side.leaving()
    told = line.ask()
    line.http.cancel()
    line.clock.advance(100)
    assert told.end == ""


def test_an_idle_line_ends_with_whatever_the_leader_says(line: Line) -> None:
    line.side.dataReceived(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert (line.http.is_lost, line.losses) == (True, 1)


def test_a_line_that_is_closed_reports_nothing(line: Line) -> None:
    told = line.ask()
    line.http.close()
    line.side.dataReceived(OK)
    line.side.leaving()
    line.clock.advance(100)
    assert (told.end, line.losses, line.wire.is_aborted) == ("", 0, True)


def test_nonsense_of_the_leader_fails_the_answer(line: Line) -> None:
    told = line.ask()
    line.side.dataReceived(b"\x00\x01 nonsense\r\n\r\n")
    assert told.end
    assert line.http.is_lost
