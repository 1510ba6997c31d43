"""A connection to a NATS server as a dialogue: what the server sends, what happens, what the client sends."""

import json

import pytest

from gateway_jetstream.client.conversation import Leaving, NatsConversation, NatsStage, Opened, TlsWanted, Warned
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import CannotConnect, NatsProtocolError


def conversation(*, uses_tls: bool = False) -> NatsConversation:
    return NatsConversation("me", uses_tls, lambda info: {"user": "u"})


def test_the_login_follows_info_and_the_connection_opens_with_the_pong() -> None:
    machine = conversation()
    assert list(machine.receive(b'INFO {"version":"2.15.1"}\r\n')) == []
    line, ping, rest = machine.outgoing().split(b"\r\n")
    fields = json.loads(line.removeprefix(b"CONNECT "))
    assert (ping, rest) == (b"PING", b"")
    assert fields["user"] == "u"
    assert fields["no_responders"] is fields["headers"] is True
    assert [type(each) for each in machine.receive(b"PONG\r\n")] == [Opened]
    assert machine.stage is NatsStage.OPEN
    assert list(machine.receive(b"PING\r\n")) == []
    assert machine.outgoing() == b"PONG\r\n"


def test_tls_comes_before_the_login() -> None:
    machine = conversation()
    assert list(machine.receive(b'INFO {"tls_required":true}\r\n')) == [TlsWanted()]
    assert machine.outgoing() == b""
    machine.tls_started()
    assert machine.outgoing().startswith(b"CONNECT ")


@pytest.mark.parametrize("added", [b"PONG\r\n", b"MSG", b"INFO {}\r\n", b"\0"])
@pytest.mark.parametrize("is_cut", [False, True])
def test_nothing_that_came_before_tls_is_believed(added: bytes, is_cut: bool) -> None:
    machine = conversation(uses_tls=True)
    if is_cut:
        assert list(machine.receive(b"INFO {}\r\n")) == [TlsWanted()]
        rest = machine.receive(added)
    else:
        rest = machine.receive(b"INFO {}\r\n" + added)
        assert next(rest) == TlsWanted()
    with pytest.raises(NatsProtocolError, match="before TLS began"):
        list(rest)


def test_a_refused_login_is_an_error_with_the_servers_words() -> None:
    machine = conversation()
    list(machine.receive(b"INFO {}\r\n"))
    with pytest.raises(CannotConnect, match="Authorization Violation"):
        list(machine.receive(b"-ERR 'Authorization Violation'\r\n"))


def test_an_open_connection_passes_on_messages_warnings_and_leaving() -> None:
    machine = conversation()
    list(machine.receive(b"INFO {}\r\nPONG\r\n"))
    wire = b"MSG a 1 2\r\nhi\r\n-ERR 'Permissions Violation'\r\nINFO {\"ldm\":true}\r\n"
    message, warned, leaving = machine.receive(wire)
    assert isinstance(message, Delivered)
    assert message.payload == b"hi"
    assert warned == Warned("Permissions Violation")
    assert leaving == Leaving()


def test_a_message_before_the_login_is_a_violation() -> None:
    machine = conversation()
    with pytest.raises(NatsProtocolError, match="a message while the connection is AWAITING_INFO"):
        list(machine.receive(b"MSG a 1 0\r\n\r\n"))
