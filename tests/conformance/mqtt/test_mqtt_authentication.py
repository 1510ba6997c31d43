"""Enhanced authentication: challenge and response at login and at re-authentication (3.15, 4.12)."""

from collections.abc import Callable

import pytest

from gateway.access import Answer, Challenge, Dialogue, Failure, Principal, Success, Visitor
from tests.conformance.mqtt.tables import CLOSED, MALFORMED, PROTOCOL_ERROR, Row, rows, statements
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, Will, authentication, maximum_packet_size, packet, reason_string

CONTINUE, AGAIN = 0x18, 0x19

ASKED = "AUTH CONTINUE_AUTHENTICATION AUTHENTICATION_METHOD='tiny' AUTHENTICATION_DATA='who?'"
ACCEPTED = "AUTHENTICATION_METHOD='tiny' AUTHENTICATION_DATA='hello'"


class TinyMethod:
    """A method that challenges until it gets a user name, accepts any name, and refuses ``bad``."""

    def begin(self, visitor: Visitor) -> Dialogue:
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        if data in (b"", b"more"):
            answer(Challenge(b"who?"))
        elif data == b"bad":
            answer(Failure("a lie"))
        else:
            answer(Success(Principal(data.decode()), b"hello"))


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway(methods={"tiny": TinyMethod(), "other": TinyMethod()})
    gateway.add_user("anna", "anna")
    return gateway


def start_login(gateway: Gateway, data: bytes | None = None, method: str = "tiny") -> tuple[Client, list[str]]:
    """Return a client that has sent CONNECT, and the answer."""
    client = gateway.new_client()
    return client, client.request(FIVE.connect("c", properties=authentication(method, data)))


def auth(reason: int = CONTINUE, data: bytes | None = b"guest", method: str = "tiny") -> bytes:
    return FIVE.auth(reason, authentication(method, data))


def logged_in(gateway: Gateway) -> Client:
    client, [line] = start_login(gateway, b"guest")
    assert line.startswith("CONNACK ")
    return client


@statements("4.12.0-2 4.12.0-3 4.12.0-5 3.15.2-1")
def test_a_method_challenges_until_it_succeeds(gateway: Gateway, version: int) -> None:
    client, received = start_login(gateway)
    assert received == [ASKED]
    assert client.request(auth(data=b"more")) == [ASKED]
    assert client.request(auth(data=None)) == [ASKED]
    [line] = client.request(auth())
    assert line.startswith("CONNACK ")
    assert line.endswith(ACCEPTED)
    assert client.request(FIVE.pingreq()) == ["PINGRESP"]


@statements("4.12.0-5")
def test_connack_names_a_method_that_succeeds_at_once(gateway: Gateway, version: int) -> None:
    _, [line] = start_login(gateway, b"guest")
    assert line.startswith("CONNACK ")
    assert line.endswith(ACCEPTED)


@statements("4.12.0-1 3.2.2-7")
def test_an_unknown_method_is_refused(gateway: Gateway, version: int) -> None:
    _, received = start_login(gateway, method="nosuch")
    assert received == ["CONNACK BAD_AUTHENTICATION_METHOD", CLOSED]


@statements("4.12.0-4")
@pytest.mark.parametrize("turns", [0, 1, 2])
def test_a_method_may_refuse_at_any_step(gateway: Gateway, version: int, turns: int) -> None:
    client, received = start_login(gateway, b"bad" if not turns else b"")
    for turn in range(turns):
        assert received == [ASKED]
        received = client.request(auth(data=b"more" if turn < turns - 1 else b"bad"))
    assert received == ["CONNACK NOT_AUTHORIZED", CLOSED]


@statements("4.12.0-4 3.1.4-2")
def test_an_authenticated_client_without_permission_is_refused(gateway: Gateway, version: int) -> None:
    _, received = start_login(gateway, b"stranger")
    assert received == ["CONNACK NOT_AUTHORIZED", CLOSED]


IN_BETWEEN = {
    "PUBLISH": FIVE.publish("t"),
    "SUBSCRIBE": FIVE.subscribe(("t", 0)),
    "PINGREQ": FIVE.pingreq(),
    "CONNECT": FIVE.connect("c"),
    "AUTH that begins again": auth(AGAIN),
    "AUTH without a method": FIVE.auth(CONTINUE, b""),
    "AUTH without anything": FIVE.auth(CONTINUE),
    "AUTH of success": auth(0),
    "AUTH of an empty body": FIVE.auth(),
}


@statements("3.1.2-30 3.14.0-1")
@pytest.mark.parametrize("sent", IN_BETWEEN.values(), ids=IN_BETWEEN)
def test_an_unexpected_packet_during_authentication_ends_the_connection(
    gateway: Gateway, version: int, sent: bytes
) -> None:
    client, _ = start_login(gateway)
    assert client.request(sent) == ["CONNACK PROTOCOL_ERROR", CLOSED]


@statements("3.1.2-30")
def test_a_client_may_disconnect_during_authentication(gateway: Gateway, version: int) -> None:
    watcher = gateway.client("watcher")
    watcher.subscribe("w")
    client = gateway.new_client()
    sent = FIVE.connect("c", properties=authentication("tiny"), will=Will("w"))
    assert client.request(sent) == [ASKED]
    assert client.request(FIVE.disconnect()) == [CLOSED]
    assert watcher.receive() == []


@statements("4.12.0-5")
def test_every_auth_names_the_method_of_the_connect(gateway: Gateway, version: int) -> None:
    client, _ = start_login(gateway)
    assert client.request(auth(method="other")) == ["CONNACK BAD_AUTHENTICATION_METHOD", CLOSED]


@statements("4.12.0-6")
def test_connack_has_no_method_if_the_connect_has_none(gateway: Gateway, version: int) -> None:
    client = gateway.client("c", username="guest", password=b"guest")
    assert "AUTHENTICATION" not in str(client.welcome)


@statements("4.12.0-7")
@pytest.mark.parametrize("reason", [CONTINUE, AGAIN])
def test_an_auth_without_a_method_in_connect_is_a_protocol_error(gateway: Gateway, version: int, reason: int) -> None:
    assert gateway.client("c").request(auth(reason)) == list(PROTOCOL_ERROR)


# ---------------------------------------------------------------- re-authentication


@statements("4.12.1-1 4.12.0-5")
def test_a_client_may_re_authenticate(gateway: Gateway, version: int) -> None:
    client = logged_in(gateway)
    client.subscribe("t")
    for _ in range(2):
        assert client.request(auth(AGAIN, b"")) == [ASKED]
        assert client.publish("t") == ["PUBLISH t 'hi'"]  # other packets are handled meanwhile
        assert client.request(auth(CONTINUE, b"guest")) == [f"AUTH SUCCESS {ACCEPTED}"]
    assert client.request(auth(AGAIN, b"guest")) == [f"AUTH SUCCESS {ACCEPTED}"]


@statements("4.12.1-1")
def test_re_authentication_must_use_the_same_method(gateway: Gateway, version: int) -> None:
    assert logged_in(gateway).request(auth(AGAIN, method="other")) == ["DISCONNECT BAD_AUTHENTICATION_METHOD", CLOSED]


@statements("4.12.1-2 4.13.2-1")
@pytest.mark.parametrize("turns", [1, 2])
def test_a_failed_re_authentication_ends_the_connection(gateway: Gateway, version: int, turns: int) -> None:
    client = logged_in(gateway)
    if turns == 2:
        assert client.request(auth(AGAIN, b"")) == [ASKED]
        assert client.request(auth(CONTINUE, b"bad")) == ["DISCONNECT NOT_AUTHORIZED", CLOSED]
    else:
        assert client.request(auth(AGAIN, b"bad")) == ["DISCONNECT NOT_AUTHORIZED", CLOSED]


@statements("4.12.1-2")
def test_re_authentication_cannot_change_the_user(gateway: Gateway, version: int) -> None:
    assert logged_in(gateway).request(auth(AGAIN, b"anna")) == ["DISCONNECT NOT_AUTHORIZED", CLOSED]


@statements("4.12.1-2")
def test_the_will_is_published_after_a_failed_re_authentication(gateway: Gateway, version: int) -> None:
    watcher, client = gateway.client("watcher"), gateway.new_client()
    watcher.subscribe("w")
    client.request(FIVE.connect("c", properties=authentication("tiny", b"guest"), will=Will("w")))
    client.request(auth(AGAIN, b"bad"))
    assert watcher.receive() == ["PUBLISH w 'gone'"]


WRONG: list[Row] = [
    *rows("flags 0001", "3.15.1-1", "", lambda _: packet(0xF1, auth(AGAIN)[2:]), *MALFORMED),
    *rows("flags 1000", "3.15.1-1", "", lambda _: packet(0xF8, auth(AGAIN)[2:]), *MALFORMED),
    *rows("success", "3.15.2-1", "", lambda _: auth(0), *PROTOCOL_ERROR),
    *rows("nothing, which is success", "3.15.2-1", "", lambda w: w.auth(), *PROTOCOL_ERROR),
    *rows("to continue without an exchange", "3.15.2-1", "", lambda _: auth(CONTINUE), *PROTOCOL_ERROR),
    *rows("a reason of another packet", "3.15.2-1", "", lambda _: auth(0x80), *PROTOCOL_ERROR),
    *rows("an unassigned reason", "3.15.2-1", "", lambda _: auth(0x1A), *PROTOCOL_ERROR),
    *rows("no method", "4.12.0-5", "", lambda w: w.auth(AGAIN, b""), *PROTOCOL_ERROR),
    *rows("two methods", "4.13.1-1", "", lambda w: w.auth(AGAIN, authentication("tiny") * 2), *PROTOCOL_ERROR),
]


@pytest.mark.parametrize(("version", "sent", "received"), WRONG)
def test_an_invalid_auth_ends_the_connection(gateway: Gateway, version: int, sent: bytes, received: list[str]) -> None:
    assert logged_in(gateway).request(sent) == received


@statements("3.1.2-24")
def test_an_auth_that_exceeds_the_maximum_packet_size_ends_the_login(gateway: Gateway, version: int) -> None:
    client = gateway.new_client()
    properties = authentication("tiny") + maximum_packet_size(10)
    assert client.request(FIVE.connect("c", properties=properties)) == ["CONNACK PACKET_TOO_LARGE", CLOSED]


@statements("3.15.2-2 3.15.2-3")
def test_an_auth_omits_the_reason_string_that_exceeds_the_maximum_packet_size(gateway: Gateway, version: int) -> None:
    client = gateway.new_client()
    properties = authentication("tiny") + maximum_packet_size(40)
    client.machine.receive(FIVE.connect("c", properties=properties))
    [asked] = client.receive_frames()
    assert str(asked) == ASKED
    assert asked.size <= 40
    properties = authentication("tiny", b"more") + reason_string("x" * 1000)
    assert client.request(FIVE.auth(CONTINUE, properties)) == [ASKED]
