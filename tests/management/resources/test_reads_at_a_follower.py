"""Reads of streams at a node that follows: the leader vouches, the copy answers, else the leader does."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from twisted.internet.testing import StringTransport

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.streams.stream import Stream
from gateway.management.pipeline.copy_reads import FRESH_S
from gateway.management.pipeline.vouched_range import LogPlace
from gateway.net.forwarding.link import LeaderSide
from gateway.node.cluster.http_line import HttpLine
from tests.management.console import Answer, parsed
from tests.management.follower import Follower, LaggingCopy

READ = "/pipeline/%2F/read?queue=orders"


@pytest.fixture
def follower() -> Follower:
    """A follower of a leader with a stream of ten messages."""
    found = Follower()
    declare(found)
    publish(found, range(10))
    return found


def declare(follower: Follower) -> Stream:
    arguments = {"x-queue-type": "stream"}
    stream = follower.console.gateway.vhost.declare_queue("orders", is_durable=True, arguments=arguments)
    assert isinstance(stream, Stream)
    return stream


def publish(follower: Follower, numbers: Iterable[int]) -> None:
    vhost, header = follower.console.gateway.vhost, native_header(Properties())
    for number in numbers:
        vhost.publish(vhost.default_exchange, Message("", "orders", header, b"%d" % number))
    follower.console.gateway.settle()


def bodies(answer: Answer) -> list[bytes]:
    assert answer.status == 200, answer
    return pa.ipc.open_stream(answer.content).read_all()["body"].to_pylist()  # type: ignore[no-any-return]


def test_the_copy_answers_with_the_range_of_the_leader(follower: Follower) -> None:
    answer = follower.ask(f"{READ}&from=3&to=6")
    assert bodies(answer) == [b"3", b"4", b"5"]
    assert (answer.headers["x-first-offset"], answer.headers["x-next-offset"]) == ("3", "6")
    assert answer.headers["x-read-at"] == "b"
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert "no-store" in answer.headers["cache-control"]
    assert (follower.reads.counts.reads, follower.reads.counts.rows) == (1, 3)
    assert (follower.worker.requests, follower.console.worker.requests) == (1, 0)


def test_a_request_to_the_leader_has_the_clients_headers_and_the_offer_of_this_node(follower: Follower) -> None:
    follower.ask(f"{READ}&from=3&to=6", **{"X-Offered-Copies": "1:99", "X-Reason": "why"})
    ((target, headers),) = follower.line.asked
    assert target == f"/api{READ}&from=3&to=6"
    assert headers["x-offered-copies"] == "1:7"
    assert (headers["host"], headers["x-reason"]) == ("here", "why")
    assert headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "path",
    [
        f"{READ}&from=10&to=12",
        f"{READ}&from=x&to=1",
        f"{READ}&from=0&to=1&incarnation=another",
        "/pipeline/%2F/read?queue=other&from=0&to=1",
        "/pipeline/other/read?queue=orders&from=0&to=1",
    ],
)
def test_the_refusals_are_those_of_the_leader(follower: Follower, path: str) -> None:
    refusal = follower.ask(path)
    assert refusal.status >= 400
    assert refusal.result == follower.console.ask("GET", path).result
    assert follower.reads.counts.reads == 0


def test_what_the_copy_lacks_comes_from_the_leader(follower: Follower) -> None:
    assert follower.copy is not None
    follower.copy.end = 5
    answer = follower.ask(f"{READ}&from=5&to=10")
    assert bodies(answer) == [b"5", b"6", b"7", b"8", b"9"]
    assert "x-read-at" not in answer.headers
    assert [headers.get("x-offered-copies") for _, headers in follower.line.asked] == ["1:7", None]


def test_a_copy_of_another_epoch_is_not_read(follower: Follower) -> None:
    assert follower.copy is not None
    for epoch in (6, 8):
        follower.epoch = epoch
        answer = follower.ask(f"{READ}&from=0&to=10")
        assert len(bodies(answer)) == 10
        assert "x-read-at" not in answer.headers
    assert follower.copy.reads == 0
    assert len(follower.line.asked) == 2  # the leader answers at once: it was told of the epoch


def test_a_copy_that_changes_before_the_leader_answers_is_not_read(follower: Follower) -> None:
    def with_epoch() -> None:
        follower.epoch = 8

    def with_another_copy() -> None:
        follower.copy = None

    for change in (with_epoch, with_another_copy):
        follower.epoch, follower.copy = 7, LaggingCopy(follower.console)
        follower.line.hold = True
        transport = follower.send(f"{READ}&from=0&to=10")
        follower.settle(3)
        change()
        follower.line.hold = False
        answer = follower.answered(transport)
        assert len(bodies(answer)) == 10
        assert "x-read-at" not in answer.headers


def test_a_range_that_took_too_long_to_read_does_not_count(follower: Follower) -> None:
    transport = follower.send(f"{READ}&from=0&to=10")
    follower.on_turn = lambda: follower.clock.advance(FRESH_S)
    answer = follower.answered(transport)
    assert len(bodies(answer)) == 10
    assert "x-read-at" not in answer.headers


def test_what_cannot_be_encoded_comes_from_the_leader(follower: Follower) -> None:
    follower.worker.error = "no memory"
    answer = follower.ask(f"{READ}&from=0&to=10")
    assert len(bodies(answer)) == 10
    assert "x-read-at" not in answer.headers


def test_a_read_waits_for_a_slot_before_the_leader_is_asked(follower: Follower) -> None:
    taken = [follower.reads.slots.acquire() for _ in range(2)]
    transport = follower.send(f"{READ}&from=0&to=10")
    follower.settle(5)
    assert follower.line.asked == []
    assert all(slot.called for slot in taken)
    follower.reads.slots.release()
    assert len(bodies(follower.answered(transport))) == 10
    assert follower.reads.slots.tokens == 1


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5])
def test_a_client_that_leaves_gives_its_slot_back(follower: Follower, turns: int) -> None:
    transport = follower.send(f"{READ}&from=0&to=10")
    follower.settle(turns)
    transport.protocol.connectionLost()
    follower.settle()
    assert follower.reads.slots.tokens == 2


def test_without_the_leader_the_answer_is_503_and_the_connection_ends(follower: Follower) -> None:
    follower.line.hold = True
    transport = follower.send(f"{READ}&from=0&to=10")
    follower.settle(3)
    follower.line.lose()
    answer = follower.answered(transport)
    assert (answer.status, answer.headers["connection"]) == (503, "close")
    assert answer.json["reason"] == "the leader of the cluster does not answer: the connection to it was lost"
    later = follower.ask("/pipeline/%2F/progress")
    assert (later.status, later.json["reason"]) == (
        503,
        "the leader of the cluster is lost; the connection to it has ended",
    )
    assert follower.reads.slots.tokens == 2


def test_reads_that_wait_for_a_slot_are_refused_in_turn_when_the_leader_is_lost(follower: Follower) -> None:
    for _ in range(follower.reads.slots.limit):
        follower.reads.slots.acquire()
    lines, transports = [], []
    for _ in range(300):  # more than the stack has room for, if each one began the next one
        side: Any = LeaderSide(follower.clock, lambda size: None, b"", lambda is_taken: None)
        side.transport = StringTransport()  # type: ignore[no-untyped-call]
        follower.line = HttpLine(side, follower.clock)
        lines.append(side)
        transports.append(follower.send(f"{READ}&from=0&to=10"))
    for side in lines:
        side.leaving()
    follower.reads.slots.release()
    for _ in transports:
        follower.clock.advance(0)
    answers = [parsed(transport.value()) for transport in transports]
    assert {answer.status for answer in answers} == {503}
    assert {answer.headers["connection"] for answer in answers} == {"close"}
    assert follower.reads.slots.tokens == 1


def test_the_client_is_told_when_the_leader_closes_the_connection(follower: Follower) -> None:
    transport = follower.send("/pipeline/%2F/progress/me", "PUT", b"{}", Authorization="Basic d3Jvbmc6d3Jvbmc=")
    answer = follower.answered(transport)
    assert (answer.status, answer.headers["connection"]) == (401, "close")
    assert "connection" not in follower.ask("/pipeline/%2F/progress").headers


def test_a_request_of_http_1_0_needs_no_host(follower: Follower) -> None:
    for path in ("/pipeline/%2F/progress", f"{READ}&from=3&to=6"):
        transport = follower.connect()
        login = b64encode(b"guest:guest").decode()
        transport.protocol.dataReceived(f"GET /api{path} HTTP/1.0\r\nAuthorization: Basic {login}\r\n\r\n".encode())
        assert follower.answered(transport).status == 200


def test_a_worker_that_does_not_answer_leaves_reads_to_the_leader(follower: Follower) -> None:
    asked: list[Callable[[], None]] = []

    def keep(head: dict[str, Any], payload: bytes, answered: Any, *, is_urgent: bool = False) -> None:
        asked.append(partial(ask, head, payload, answered))

    ask, follower.worker.ask = follower.worker.ask, keep  # type: ignore[method-assign]
    for _ in range(5):
        transport = follower.send(f"{READ}&from=0&to=10")
        follower.settle()
        assert transport.value() == b""
        follower.clock.advance(FRESH_S)
        answer = follower.answered(transport)
        assert (len(bodies(answer)), answer.headers.get("x-read-at")) == (10, None)
        assert follower.reads.slots.tokens == 2
    assert len(asked) == 4  # twice as many as reads at a time
    follower.worker.ask = ask  # type: ignore[method-assign]
    for call in asked:
        call()
    follower.settle()
    assert follower.ask(f"{READ}&from=0&to=10").headers["x-read-at"] == "b"


def test_other_requests_are_the_leaders(follower: Follower) -> None:
    assert follower.ask("/pipeline/%2F/progress").json == []
    put = follower.ask("/pipeline/%2F/progress/me", "PUT", b'{"offsets": {"orders": {"0": 3}}}')
    assert put.status == 204
    assert follower.ask("/pipeline/%2F/progress").json[0]["consumer"] == "me"
    assert follower.ask(f"{READ}&from=0&to=5", "HEAD").status == 200
    assert follower.ask("/pipeline/%2F/stage", "POST", b"x" * 1001).status == 413
    assert all("x-offered-copies" not in headers for _, headers in follower.line.asked)


def test_a_page_gets_the_leaders_answer_with_its_headers(follower: Follower) -> None:
    answer = follower.ask(f"{READ}&from=0&to=5", Origin="http://here")
    assert "x-read-at" not in answer.headers
    assert follower.reads.counts.reads == 0


def test_files_that_an_earlier_epoch_had_open_are_closed(follower: Follower) -> None:
    copy = follower.copy
    assert copy is not None
    follower.ask(f"{READ}&from=0&to=5")
    follower.ask(f"{READ}&from=0&to=5")
    assert copy.closed == 1
    follower.epoch = 8
    follower.lead(LogPlace(1, 8))
    assert follower.ask(f"{READ}&from=0&to=5").headers["x-read-at"] == "b"
    assert copy.closed == 2


def test_a_leader_that_is_not_part_of_a_cluster_answers_itself(follower: Follower) -> None:
    follower.lead(None)
    answer = follower.console.ask("GET", f"{READ}&from=0&to=5", headers={"X-Offered-Copies": "1:7"})
    assert len(bodies(answer)) == 5
