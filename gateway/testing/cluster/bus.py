"""The contract of the bus, as a check for engines. ``BUS_CHECKS`` holds the single checks."""

from collections.abc import Callable
from typing import Final

from gateway.cluster.bus import Bus, Reply
from gateway.cluster.errors import ClusterError, NodeUnreachable, TooLarge, Unanswered
from gateway.testing.cluster.place import ClusterPlace


def check_bus(new_place: Callable[[], ClusterPlace]) -> None:
    """Check that an engine keeps every promise of ``gateway.cluster.bus``.

    :raises AssertionError: for the first broken promise.
    """
    for check in BUS_CHECKS:
        place = new_place()
        try:
            check(place)
        finally:
            place.close()


class SeenTraffic:
    """A node that keeps what it gets; ``answers`` decides about requests."""

    def __init__(self, answers: Callable[[bytes, Reply], None] = lambda body, reply: reply(b"re:" + body)) -> None:
        self._answers = answers
        self.got: list[bytes] = []

    def on_request(self, body: bytes, reply: Reply) -> None:
        """Keep a request."""
        self.got.append(body)
        self._answers(body, reply)

    def on_frame(self, frame: bytes) -> None:
        """Keep a frame."""
        self.got.append(frame)


def _asked(place: ClusterPlace, bus: Bus, node: str, body: bytes, timeout_s: float = 10.0) -> bytes | ClusterError:
    answers: list[bytes | ClusterError] = []
    bus.request(node, body, answers.append, timeout_s)
    assert not answers, "a request was answered from inside the call"
    place.until(lambda: answers)
    (answer,) = answers
    return answer


def _joined(place: ClusterPlace, node: str, listener: SeenTraffic) -> Bus:
    """Return the bus of a node once it can be reached."""
    bus = place.bus()
    bus.join(node, listener)
    place.until(lambda: not isinstance(_asked(place, place.bus(), node, b"are you there?"), NodeUnreachable))
    listener.got.clear()
    return bus


def _a_request_is_answered(place: ClusterPlace) -> None:
    node = place.new_name()
    _joined(place, node, SeenTraffic())
    bus = place.bus()
    for body in (b"", b"hello", bytes(range(256)), b"x" * 200_000):
        assert _asked(place, bus, node, body) == b"re:" + body


def _nodes_have_names_of_any_text(place: ClusterPlace) -> None:
    node = f"{place.new_name()} a.b *> \u00e4/@"
    _joined(place, node, SeenTraffic())
    assert _asked(place, place.bus(), node, b"1") == b"re:1"


def _a_request_is_answered_once_and_perhaps_later(place: ClusterPlace) -> None:
    node, replies = place.new_name(), list[Reply]()
    listener = SeenTraffic(lambda body, reply: reply(b"") if body.startswith(b"are") else replies.append(reply))
    _joined(place, node, listener)
    answers: list[bytes | ClusterError] = []
    place.bus().request(node, b"later", answers.append, 10.0)
    place.until(lambda: replies)
    assert answers == []
    replies[0](b"now")
    replies[0](b"again")
    place.until(lambda: answers)
    assert _asked(place, place.bus(), node, b"are you there?") == b""
    assert answers == [b"now"], f"answered {answers}"


def _a_node_that_is_not_there_is_unreachable(place: ClusterPlace) -> None:
    assert isinstance(_asked(place, place.bus(), place.new_name(), b"x"), NodeUnreachable)


def _a_node_that_does_not_answer_is_reported_after_the_time_limit(place: ClusterPlace) -> None:
    node = place.new_name()
    silent = SeenTraffic(lambda body, reply: reply(b"") if body.startswith(b"are") else None)
    _joined(place, node, silent)
    before_s = place.clock.monotonic_s()
    assert isinstance(_asked(place, place.bus(), node, b"x", timeout_s=0.5), Unanswered)
    assert place.clock.monotonic_s() - before_s >= 0.45, "the request failed before its time limit"
    assert silent.got == [b"x"]


def _frames_and_requests_arrive_in_order(place: ClusterPlace) -> None:
    node, listener = place.new_name(), SeenTraffic()
    _joined(place, node, listener)
    bus = place.bus()
    sent, answers = [], list[bytes | ClusterError]()
    place.until(lambda: not isinstance(_asked(place, bus, node, b"are you there?"), NodeUnreachable))
    listener.got.clear()
    for at in range(200):
        sent.append(b"%d" % at)
        if at % 10:
            bus.send(node, sent[-1])
        else:
            bus.request(node, sent[-1], answers.append, 10.0)
    place.until(lambda: len(answers) == 20 and len(listener.got) == 200)
    assert listener.got == sent, "frames arrived in another order"
    assert answers == [b"re:" + body for body in sent[::10]]


def _a_frame_for_nobody_is_lost(place: ClusterPlace) -> None:
    node, other = place.new_name(), place.new_name()
    bus = place.bus()
    bus.send(other, b"lost")
    listener = SeenTraffic()
    _joined(place, node, listener)
    place.until(lambda: not isinstance(_asked(place, bus, node, b"are you there?"), NodeUnreachable))
    assert b"lost" not in listener.got


def _what_is_too_large_is_refused(place: ClusterPlace) -> None:
    node, listener = place.new_name(), SeenTraffic()
    _joined(place, node, listener)
    bus = place.bus()
    large = b"x" * (bus.most_bytes + 1)
    answers: list[bytes | ClusterError] = []
    refused = 0
    try:
        bus.send(node, large)
    except TooLarge:
        refused += 1
    try:
        bus.request(node, large, answers.append, 1.0)
    except TooLarge:
        refused += 1
    assert refused == 2, "a frame that is too large was sent"
    assert _asked(place, bus, node, b"1") == b"re:1"
    assert listener.got == [b"1"]
    assert answers == []


def _a_node_that_left_is_unreachable(place: ClusterPlace) -> None:
    node, listener = place.new_name(), SeenTraffic()
    bus = place.bus()
    seat = bus.join(node, listener)
    other = place.bus()
    place.until(lambda: not isinstance(_asked(place, other, node, b"are you there?"), NodeUnreachable))
    seat.leave()
    seat.leave()
    place.until(lambda: isinstance(_asked(place, other, node, b"are you there?"), NodeUnreachable))
    got = list(listener.got)
    other.send(node, b"late")
    assert isinstance(_asked(place, other, node, b"late"), NodeUnreachable)
    assert listener.got == got


BUS_CHECKS: Final = (
    _a_request_is_answered,
    _nodes_have_names_of_any_text,
    _a_request_is_answered_once_and_perhaps_later,
    _a_node_that_is_not_there_is_unreachable,
    _a_node_that_does_not_answer_is_reported_after_the_time_limit,
    _frames_and_requests_arrive_in_order,
    _a_frame_for_nobody_is_lost,
    _what_is_too_large_is_refused,
    _a_node_that_left_is_unreachable,
)
