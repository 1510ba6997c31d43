"""A login that an authenticator decides later: input waits, within limits."""

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
    """An authenticator that answers when a test calls ``answer``."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Principal | None], None]] = []

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self.asked.append(answer)

    def answer(self, name: str | None) -> None:
        self.asked.pop()(None if name is None else Principal(name))


def asking(**settings: Any) -> tuple[Slow, Client]:
    slow = Slow()
    return slow, Gateway(authenticators=[slow], **settings).new_client()


def test_input_during_the_authentication_is_handled_afterwards_in_order() -> None:
    slow, client = asking()
    assert client.request_frames(CONNECT + SUBSCRIBE) == []
    assert client.request_frames(SEND[:20]) == []
    assert client.request_frames(SEND[20:]) == []
    slow.answer("guest")
    assert [received.verb for received in client.receive_frames()] == ["CONNECTED", "MESSAGE"]


def test_an_empty_password_is_refused_without_asking_the_authenticator() -> None:
    for headers in ({"login": "guest"}, {"login": "guest", "passcode": ""}, {"login": "", "passcode": "guest"}, {}):
        slow, client = asking()
        assert refusal(client.request_frames(frame("CONNECT", headers))) == "Bad CONNECT"
        assert not slow.asked


def test_input_during_a_refused_authentication_is_dropped() -> None:
    slow, client = asking()
    client.request_frames(CONNECT + SEND)
    slow.answer(None)
    assert refusal(client.receive_frames()) == "Bad CONNECT"
    assert not client.gateway.vhost.queue_by_name


def test_too_much_input_during_the_authentication_ends_the_connection() -> None:
    slow, client = asking()
    client.request_frames(CONNECT)
    assert client.request_frames(SEND * 500) == []
    assert refusal(client.request_frames(SEND * 2000)) == "Frame too large"
    slow.answer("guest")
    assert client.receive_frames() == []


def test_a_client_that_disconnected_during_the_authentication_is_not_logged_in() -> None:
    slow, client = asking()
    client.request_frames(CONNECT)
    client.lose()
    slow.answer("guest")
    assert (client.machine.state, client.machine.conversation) == (State.CLOSED, None)


def test_a_client_without_access_to_the_virtual_host_is_refused() -> None:
    slow, client = asking()
    client.request_frames(CONNECT)
    slow.answer("stranger")
    assert refusal(client.receive_frames()) == "Bad CONNECT"


def test_a_virtual_host_may_be_deleted_during_the_authentication() -> None:
    slow, client = asking()
    client.request_frames(CONNECT)
    client.gateway.broker.delete_vhost("/")
    slow.answer("guest")
    assert refusal(client.receive_frames()) == "Bad CONNECT"


def test_the_first_frame_of_an_implicit_connect_waits_too() -> None:
    slow, client = asking(default_user="guest", default_passcode="guest", implicit_connect=True)
    client.version = "1.0"
    client.request_frames(frame("SUBSCRIBE", {"destination": "/queue/q"}) + SEND)
    slow.answer("guest")
    assert [received.verb for received in client.receive_frames()] == ["MESSAGE"]
