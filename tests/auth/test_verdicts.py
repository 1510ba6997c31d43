"""The cache of another server's answers: waiting, expiry, refreshing, and servers without an answer."""

from collections.abc import Callable

import pytest
from twisted.internet.task import Clock

from gateway.api import PermissionUnknown
from gateway_auth.asked.questions import Question, ResourceKind, Verdict
from gateway_auth.asked.verdicts import RETRY_S, Verdicts

QUESTION = Question("anna", (), "/", ResourceKind.QUEUE, "orders", "read")


class Server:
    """Keeps the questions until the test answers them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.open: list[Callable[[Verdict], None]] = []
        self.changes = 0
        self.verdicts = Verdicts(lambda question, answer: self.open.append(answer), self.clock, 60, self.changed)

    def changed(self) -> None:
        self.changes += 1

    def answer(self, verdict: Verdict) -> None:
        self.open.pop(0)(verdict)

    def asked(self) -> str:
        """Return what a request finds out: ``yes``, ``no``, or ``unknown``."""
        try:
            return "yes" if self.verdicts.allows(QUESTION) else "no"
        except PermissionUnknown:
            return "unknown"


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize(("verdict", "found"), [(True, "yes"), (False, "no"), (None, "no")])
def test_a_request_waits_for_the_first_answer(server: Server, verdict: Verdict, found: str) -> None:
    assert server.asked() == "unknown"
    server.answer(verdict)
    assert server.asked() == found


def test_requests_that_need_the_same_permission_share_one_question(server: Server) -> None:
    woken: list[int] = []
    for number in range(3):
        with pytest.raises(PermissionUnknown, match="queue 'orders' in vhost '/' is not decided yet") as unknown:
            server.verdicts.allows(QUESTION)
        unknown.value.when_known(lambda number=number: woken.append(number))  # type: ignore[misc]
    assert len(server.open) == 1
    server.answer(True)
    assert woken == [0, 1, 2]


def test_an_answer_holds_until_its_time_is_over_and_then_while_it_is_asked_for_again(server: Server) -> None:
    server.asked()
    server.answer(True)
    server.clock.advance(59)
    assert (server.asked(), len(server.open)) == ("yes", 0)
    server.clock.advance(2)
    assert (server.asked(), len(server.open)) == ("yes", 1)
    server.answer(False)
    assert server.asked() == "no"


def test_a_changed_answer_makes_connections_check_again(server: Server) -> None:
    server.asked()
    server.answer(True)
    server.clock.advance(61)
    server.asked()
    before = server.changes
    server.answer(False)
    assert server.changes == before + 1


def test_a_permission_without_an_answer_is_refused_and_soon_asked_for_again(server: Server) -> None:
    server.asked()
    server.answer(None)
    assert (server.asked(), len(server.open)) == ("no", 0)
    server.clock.advance(RETRY_S)
    assert (server.asked(), len(server.open)) == ("unknown", 1)


def test_the_old_answer_holds_while_the_server_is_down_but_no_longer_than_twice_its_time(server: Server) -> None:
    server.asked()
    server.answer(True)
    server.clock.advance(61)
    assert server.asked() == "yes"
    server.answer(None)
    assert server.asked() == "yes"
    server.clock.advance(59)
    server.answer(None)
    assert server.asked() == "no"


def test_unused_answers_are_dropped(server: Server) -> None:
    server.asked()
    server.answer(True)
    for _ in range(4):
        server.clock.advance(60)
    assert len(server.verdicts) == 0
    assert not server.clock.getDelayedCalls()


def test_connections_check_again_after_each_time_to_live(server: Server) -> None:
    server.asked()
    server.answer(True)
    server.clock.advance(60)
    assert server.changes == 1


def test_closing_ends_the_timer(server: Server) -> None:
    assert server.asked() == "unknown"
    assert server.clock.getDelayedCalls()
    server.verdicts.close()
    server.answer(True)
    assert server.asked() == "yes"
    assert not server.clock.getDelayedCalls()


def test_no_timer_starts_after_closing(server: Server) -> None:
    server.verdicts.close()
    assert server.asked() == "unknown"
    assert not server.clock.getDelayedCalls()
