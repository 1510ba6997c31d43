"""Clients of a follower that it answers itself: it looks at their first bytes, and passes all others on."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from gateway.net.forwarding.link import ClientSide, LeaderSide
from tests.net.forwarding_nodes import ForwardingNodes

MARK = b"GET /here"


class Answering:
    """Answers clients that begin with a mark; ``clients`` has what they sent."""

    def __init__(self) -> None:
        self.looked = 0
        self.clients: list[bytearray] = []
        self.leaders: list[LeaderSide] = []

    def answers(self, data: bytes) -> bool | None:
        self.looked += 1
        if data.startswith(MARK):
            return True
        return None if MARK.startswith(data) else False

    def serve(self, client: ClientSide, leader: LeaderSide, data: bytes) -> None:
        received = bytearray(data)
        self.clients.append(received)
        self.leaders.append(leader)
        client.tap = received.extend
        client.transport.write(b"answered here")  # type: ignore[union-attr]


@pytest.fixture
def nodes() -> Iterator[ForwardingNodes]:
    found = ForwardingNodes()
    yield found
    found.close()


@pytest.fixture
def answering(nodes: ForwardingNodes) -> Answering:
    nodes.follower.answering = found = Answering()
    return found


@pytest.mark.parametrize("cuts", [(), (1,), (3, 4), (8,)])
def test_a_client_with_the_right_beginning_is_answered_here(
    nodes: ForwardingNodes, answering: Answering, cuts: tuple[int, ...]
) -> None:
    client, served = nodes.linked()
    data = MARK + b" and more"
    for begin, end in pairwise((0, *cuts, len(data))):
        client.send(data[begin:end])
        nodes.loop.turn()
        nodes.loop.turn()
    assert nodes.receive(client, 13) == b"answered here"
    client.send(b"later")
    nodes.until(lambda: answering.clients[0] == data + b"later")
    assert served.received == b""


@pytest.mark.parametrize("data", [b"PUT /here", b"GET /there", b"G", b"GET /her\r\n"])
def test_other_clients_are_passed_on_with_all_that_they_sent(
    nodes: ForwardingNodes, answering: Answering, data: bytes
) -> None:
    client, served = nodes.linked()
    client.send(data)
    nodes.until(lambda: answering.looked)
    client.send(b"!rest")
    nodes.until(lambda: served.received == data + b"!rest")
    served.line.write(b"from the leader")
    assert nodes.receive(client, 15) == b"from the leader"
    assert answering.clients == []


def test_a_client_that_ends_before_it_is_clear_frees_the_leader(nodes: ForwardingNodes, answering: Answering) -> None:
    client, served = nodes.linked()
    client.send(MARK[:3])
    nodes.until(lambda: answering.looked)
    client.close()
    nodes.until(lambda: served.lost is not None)
    nodes.until(lambda: not nodes.follower.linked)
    assert nodes.counts.open == 0


def test_a_client_that_is_answered_here_leaves_a_former_leader(nodes: ForwardingNodes, answering: Answering) -> None:
    client, served = nodes.linked()
    client.send(MARK)
    nodes.until(lambda: answering.clients)
    (side,) = nodes.follower.linked
    side.leave()
    nodes.until(lambda: served.lost is not None)
    assert nodes.receive_all(client).startswith(b"answered here")
