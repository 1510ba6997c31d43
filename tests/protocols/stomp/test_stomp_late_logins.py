"""A login that somebody else decides, later: what comes meanwhile waits, within bounds."""

from collections.abc import Callable
from typing import Any

from gateway.access import Credentials, Principal
from gateway_stomp.state import State
from tests.protocols.stomp.dialogue import Client, Gateway, frame
from tests.protocols.stomp.test_stomp_connecting import refusal

CONNECT = frame("CONNECT", {"login": "guest", "passcode": "guest", "accept-version": "1.2"})
SUBSCRIBE = frame("SUBSCRIBE", {"id": "0", "destination": "/queue/q"})
SEND = frame("SEND", {"destination": "/queue/q"}, b"hi")


class Slow:
    """Answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Principal | None], None]] = []

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self.asked.append(answer)

    def answer(self, name: str | None) -> None:
        self.asked.pop()(None if name is None else Principal(name))


def asking(**settings: Any) -> tuple[Slow, Client]:
    slow = Slow()
    return slow, Gateway(authenticators=[slow], **settings).stranger()


def test_what_comes_meanwhile_is_done_afterwards_and_in_order() -> None:
    slow, client = asking()
    assert client.say_bytes(CONNECT + SUBSCRIBE) == []
    assert client.say_bytes(SEND[:20]) == []
    assert client.say_bytes(SEND[20:]) == []
    slow.answer("guest")
    assert [heard.verb for heard in client.hear()] == ["CONNECTED", "MESSAGE"]


def test_nobody_is_asked_about_an_empty_password() -> None:
    for headers in ({"login": "guest"}, {"login": "guest", "passcode": ""}, {"login": "", "passcode": "guest"}, {}):
        slow, client = asking()
        assert refusal(client.say_bytes(frame("CONNECT", headers))) == "Bad CONNECT"
        assert not slow.asked


def test_nothing_of_it_is_done_when_the_answer_is_no() -> None:
    slow, client = asking()
    client.say_bytes(CONNECT + SEND)
    slow.answer(None)
    assert refusal(client.hear()) == "Bad CONNECT"
    assert not client.gateway.vhost.queue_by_name


def test_too_much_of_it_ends_the_connection() -> None:
    slow, client = asking()
    client.say_bytes(CONNECT)
    assert client.say_bytes(SEND * 500) == []
    assert refusal(client.say_bytes(SEND * 2000)) == "Frame too large"
    slow.answer("guest")
    assert client.hear() == []


def test_a_client_that_left_meanwhile_is_not_let_in() -> None:
    slow, client = asking()
    client.say_bytes(CONNECT)
    client.lose()
    slow.answer("guest")
    assert (client.machine.state, client.machine.conversation) == (State.CLOSED, None)


def test_a_client_that_may_not_enter_is_told_so() -> None:
    slow, client = asking()
    client.say_bytes(CONNECT)
    slow.answer("stranger")
    assert refusal(client.hear()) == "Bad CONNECT"


def test_a_virtual_host_may_be_gone_when_the_answer_comes() -> None:
    slow, client = asking()
    client.say_bytes(CONNECT)
    client.gateway.broker.delete_vhost("/")
    slow.answer("guest")
    assert refusal(client.hear()) == "Bad CONNECT"


def test_the_frame_that_stands_for_a_connect_waits_too() -> None:
    slow, client = asking(default_user="guest", default_passcode="guest", implicit_connect=True)
    client.version = "1.0"
    client.say_bytes(frame("SUBSCRIBE", {"destination": "/queue/q"}) + SEND)
    slow.answer("guest")
    assert [heard.verb for heard in client.hear()] == ["MESSAGE"]
