"""The connection class and the frame level: protocol header, login, tuning, opening, closing, and wrong frames."""

from typing import Any

import pytest
from pamqp import commands

from gateway.access import Access, CertificateSubject, Credentials, Principal
from gateway.kernel.messages.message import Value
from gateway_amqp.state import State
from gateway_amqp.tables import encode_table
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.conformance.amqp.tables import (
    ALIVE,
    CHANNEL_CLOSED,
    CLOSE,
    CLOSE_CHANNEL,
    EOF,
    OPENED,
    PROBE,
    Row,
    channel_close,
    connection_close,
    exchange,
    on_channel,
    queue,
    row,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import (
    ALL_CAPABILITIES,
    Sent,
    asked,
    content_header,
    frame,
    handshake,
    publish,
    start_ok,
)

TUNE = "Connection.Tune(channel_max=2047, frame_max=131072, heartbeat=60)"
OPEN_OK = "Connection.OpenOk(known_hosts='')"
TUNE_OK = commands.Connection.TuneOk(2047, 131_072, 60)
OPEN = commands.Connection.Open("/")
LOGIN = start_ok("\0guest\0guest")
HEARTBEAT = frame(8, 0, b"")


@pytest.fixture
def caller() -> Peer:
    """Return a peer that has not sent anything yet."""
    return Peer(Gateway())


@pytest.fixture
def greeted(caller: Peer) -> Peer:
    caller.send(PROTOCOL_HEADER).receive()
    return caller


# ---------------------------------------------------------------- protocol header


@pytest.mark.parametrize("header", [PROTOCOL_HEADER, b"AMQP\x01\x01\x00\x09"], ids=["0-9-1", "0-9"])
def test_2_2_4_connection_start_has_the_brokers_capabilities(caller: Peer, header: bytes) -> None:
    [received] = caller.send(header).receive_frames()
    start = received.method
    assert isinstance(start, commands.Connection.Start)
    assert (start.version_major, start.version_minor, start.mechanisms, start.locales) == (
        0, 9, "PLAIN AMQPLAIN", "en_US",
    )  # fmt: skip
    assert start.server_properties["capabilities"] == {
        "publisher_confirms": True,
        "exchange_exchange_bindings": True,
        "basic.nack": True,
        "consumer_cancel_notify": True,
        "connection.blocked": True,
        "consumer_priorities": True,
        "authentication_failure_close": True,
        "per_consumer_qos": True,
        "direct_reply_to": True,
    }


OTHER_HEADERS = [
    b"AMQP\x00\x00\x09\x00",
    b"AMQP\x00\x01\x00\x00",
    b"AMQP\x03\x01\x00\x00",
    b"AMQP\x02\x01\x00\x00",
    b"AMQP\x00\x00\x0a\x00",
    b"AMQP\x01\x01\x08\x00",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
    b"AMQPxxxx",
    b"XXXXXXXX",
]


@pytest.mark.parametrize("header", OTHER_HEADERS)
def test_2_2_4_any_other_header_is_answered_with_the_protocol_header_and_a_close(caller: Peer, header: bytes) -> None:
    assert caller.send(header).receive() == ["AMQP 0-9-1", EOF]
    assert [event for event, _ in caller.log_lines] == ["connection closing"]


def test_an_incomplete_protocol_header_is_waited_for(caller: Peer) -> None:
    assert caller.send(b"AMQP").receive() == []
    assert caller.send(b"\x00\x00\x09\x01").receive()[0].startswith("Connection.Start(")


# ---------------------------------------------------------------- login

REFUSED = "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the broker logfile."


def amqplain(**fields: Value) -> str:
    return encode_table(fields)[4:].decode("utf-8", "surrogateescape")


def refused(mechanism: str) -> list[str]:
    return [connection_close(REFUSED.format(mechanism)), EOF]


LOGINS: list[Any] = [
    pytest.param("PLAIN", "\0guest\0guest", [TUNE], id="PLAIN"),
    pytest.param("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="guest"), [TUNE], id="AMQPLAIN"),
    pytest.param("AMQPLAIN", amqplain(PASSWORD="guest", LOGIN="guest", x=1), [TUNE], id="AMQPLAIN with more fields"),
    pytest.param("PLAIN", "\0guest\0wrong", refused("PLAIN"), id="a wrong password"),
    pytest.param("PLAIN", "\0nobody\0guest", refused("PLAIN"), id="an unknown user"),
    pytest.param("PLAIN", "\0guest\0", refused("PLAIN"), id="an empty password"),
    pytest.param("AMQPLAIN", amqplain(LOGIN="guest", PASSWORD="no"), refused("AMQPLAIN"), id="AMQPLAIN, wrong"),
    pytest.param("PLAIN", "guest", [EOF], id="PLAIN without NULs"),
    pytest.param("PLAIN", "admin\0guest\0guest", [EOF], id="PLAIN with an authorization identity"),
    pytest.param("PLAIN", "", [EOF], id="PLAIN, empty"),
    pytest.param("PLAIN", "\0\udcff\0guest", [EOF], id="PLAIN, not UTF-8"),
    pytest.param("AMQPLAIN", amqplain(LOGIN="guest"), [EOF], id="AMQPLAIN without a password"),
    pytest.param("AMQPLAIN", amqplain(LOGIN=1, PASSWORD="guest"), [EOF], id="AMQPLAIN with a number"),
    pytest.param("AMQPLAIN", "\0\0\0\x05garbage", [EOF], id="AMQPLAIN, garbage"),
    pytest.param("SCRAM", "", [EOF], id="an unknown mechanism"),
    pytest.param("EXTERNAL", "", [EOF], id="EXTERNAL where it is not offered"),
    pytest.param("ANONYMOUS", "", [EOF], id="ANONYMOUS"),
    pytest.param("plain", "\0guest\0guest", [EOF], id="lower case"),
]


@pytest.mark.parametrize(("mechanism", "response", "answers"), LOGINS)
def test_sasl_responses_are_answered(greeted: Peer, mechanism: str, response: str, answers: list[str]) -> None:
    assert greeted.send(start_ok(response, mechanism)).receive() == answers


def test_a_refused_client_without_the_capability_is_disconnected_without_a_reason(greeted: Peer) -> None:
    assert greeted.send(start_ok("\0guest\0wrong", capabilities={})).receive() == [EOF]


def test_capabilities_that_are_not_a_table_are_ignored(greeted: Peer) -> None:
    login = start_ok("\0guest\0wrong")
    login.client_properties = {"capabilities": "all"}
    assert greeted.send(login).receive() == [EOF]


def test_the_guest_user_is_accepted_from_local_addresses_only() -> None:
    stranger = Peer(Gateway(), host="192.0.2.7")
    stranger.send(PROTOCOL_HEADER).receive()
    assert stranger.send(LOGIN).receive() == refused("PLAIN")


def test_external_uses_the_name_in_the_certificate() -> None:
    asked_for: list[Credentials] = []

    class Certified:
        def authenticate(self, credentials: Credentials, answer: Any) -> None:
            asked_for.append(credentials)
            answer(Principal("client"))

    gateway = Gateway(login=Access([Certified()], []), mechanisms="EXTERNAL PLAIN")
    subject = CertificateSubject("client", "CN=client")
    peer = Peer(gateway, certificate=subject)
    peer.send(PROTOCOL_HEADER).receive()
    assert peer.send(start_ok("", "EXTERNAL")).receive() == [TUNE]
    assert [credentials.certificate for credentials in asked_for] == [subject]


class Slow:
    """An authenticator that answers when a test calls ``answer``."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def authenticate(self, credentials: Credentials, answer: Any) -> None:
        self.answers.append(answer)


def test_input_during_the_authentication_waits() -> None:
    slow = Slow()
    peer = Peer(Gateway(login=Access([slow], [])))
    peer.send(*handshake())
    peer.send(PROBE)
    assert len(peer.receive()) == 1
    slow.answers[0](Principal("guest"))
    assert peer.receive() == [TUNE, OPEN_OK, OPENED, ALIVE]


def test_an_authentication_that_ends_after_a_disconnect_is_ignored() -> None:
    slow = Slow()
    peer = Peer(Gateway(login=Access([slow], [])))
    peer.send(PROTOCOL_HEADER, LOGIN).receive()
    peer.lose()
    slow.answers[0](Principal("guest"))
    assert peer.machine.state is State.CLOSED


def test_input_during_the_authentication_is_limited() -> None:
    peer = Peer(Gateway(login=Access([Slow()], [])))
    peer.send(PROTOCOL_HEADER, LOGIN).receive()
    for _ in range(1000):
        peer.send(bytes(1000))
    assert peer.receive() == [EOF]


# ---------------------------------------------------------------- tuning and opening


def not_agreed(text: str) -> str:
    return connection_close(f"NOT_ALLOWED - failed to negotiate connection parameters: negotiated {text}", 10, 31)


TUNINGS: list[Any] = [
    pytest.param((2047, 131_072, 60), [OPEN_OK], id="as offered"),
    pytest.param((1, 4096, 0), [OPEN_OK], id="the least"),
    pytest.param((0, 0, 65535), [OPEN_OK], id="4.2.3: 0 selects the server's limit"),
    pytest.param((2047, 131_073, 60), [not_agreed("frame_max = 131073 is higher than the maximum allowed value "
                                                  "(131072)")], id="larger frames"),
    pytest.param((2047, 4095, 60), [not_agreed("frame_max = 4095 is lower than the minimum allowed value (4096)")],
                 id="4.2.3: frames below the minimum"),
    pytest.param((2047, 1, 60), [not_agreed("frame_max = 1 is lower than the minimum allowed value (4096)")],
                 id="frames of one byte"),
    pytest.param((2048, 131_072, 60), [not_agreed("channel_max = 2048 is higher than the maximum allowed value "
                                                  "(2047)")], id="more channels"),
]  # fmt: skip


@pytest.mark.parametrize(("limits", "answers"), TUNINGS)
def test_4_2_3_tune_ok_is_answered(greeted: Peer, limits: tuple[int, int, int], answers: list[str]) -> None:
    greeted.send(LOGIN).receive()
    assert greeted.send(commands.Connection.TuneOk(*limits), OPEN).receive() == answers


VHOSTS = [
    ("", "NOT_ALLOWED - vhost  not found"),
    ("nope", "NOT_ALLOWED - vhost nope not found"),
    ("closed", "NOT_ALLOWED - access to vhost 'closed' refused for user 'guest'"),
]


@pytest.mark.parametrize(("vhost", "text"), VHOSTS)
def test_r2_opening_a_vhost_without_access_is_refused(greeted: Peer, vhost: str, text: str) -> None:
    greeted.gateway.broker.declare_vhost("closed")
    greeted.send(LOGIN, TUNE_OK).receive()
    assert greeted.send(asked(commands.Connection.Open, virtual_host=vhost)).receive() == [
        connection_close(text, 10, 40)
    ]


def test_a_vhost_name_that_is_not_utf_8_is_refused(greeted: Peer) -> None:
    greeted.send(LOGIN, TUNE_OK).receive()
    assert greeted.send(frame(1, 0, b"\0\x0a\0\x28\x02\xff\xfe\0\0")).receive() == [
        connection_close("FRAME_ERROR - Malformed UTF-8 in shortstr", 10, 40)
    ]


OUT_OF_ORDER: list[Any] = [
    pytest.param([OPEN], [EOF], id="open before start-ok"),
    pytest.param([TUNE_OK], [EOF], id="tune-ok before start-ok"),
    pytest.param([commands.Channel.Open()], [EOF], id="channel.open before start-ok"),
    pytest.param([HEARTBEAT, LOGIN], [TUNE], id="a heartbeat is always allowed"),
    pytest.param([LOGIN, LOGIN], [TUNE, EOF], id="start-ok twice"),
    pytest.param([LOGIN, OPEN], [TUNE, EOF], id="open before tune-ok"),
    pytest.param([LOGIN, TUNE_OK, commands.Channel.Open()],
                 [TUNE, connection_close("UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,1,48>>")],
                 id="channel.open before open"),
    pytest.param([CLOSE], ["Connection.CloseOk()", EOF], id="close before start-ok"),
    pytest.param([LOGIN, CLOSE], [TUNE, "Connection.CloseOk()", EOF], id="close before tune-ok"),
    pytest.param([frame(1, 0, bytes(4097))], [EOF], id="4.2.3: frames above the minimum before tuning"),
    pytest.param([b"\1\0\0\0\0\0\4\0\x0a\0\x0b\0"], [EOF], id="a bad frame end"),
    pytest.param([*[*handshake()][1:], PROBE], [TUNE, OPEN_OK, OPENED, ALIVE], id="everything in one write"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), OUT_OF_ORDER)
def test_2_2_4_the_handshake_has_an_order(greeted: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert greeted.send(*sent).receive() == answers


# ---------------------------------------------------------------- frames


def frame_error(text: str, *ids: int) -> str:
    return connection_close(f"FRAME_ERROR - {text}", *ids)


def unexpected(text: str, *ids: int) -> str:
    return connection_close(f"UNEXPECTED_FRAME - {text}", *ids)


def out_of_state(*ids: int) -> str:
    return connection_close("CHANNEL_ERROR - unexpected method in connection state running", *ids)


def not_open(*ids: int) -> str:
    return connection_close("CHANNEL_ERROR - expected 'channel.open'", *ids)


def unimplemented(*ids: int) -> str:
    return connection_close("COMMAND_INVALID - unimplemented method", *ids)


DECLARE = b"\0\x32\0\x0a\0\0"
NOT_A_METHOD = "expected method frame, got non method frame instead"
ON_CHANNEL_0 = [
    (asked(commands.Exchange.Declare, exchange="x"), (40, 10)),
    (commands.Basic.Publish(), (60, 40)),
    (commands.Channel.Open(), (20, 10)),
    (CLOSE_CHANNEL, (20, 40)),
]
AFTER_OPEN = [
    (OPEN, (10, 40)),
    (commands.Connection.CloseOk(), (10, 51)),
    (LOGIN, (10, 11)),
    (TUNE_OK, (10, 31)),
    (commands.Connection.Blocked("x"), (10, 60)),
    (commands.Connection.Unblocked(), (10, 61)),
    (commands.Connection.SecureOk(""), (10, 21)),
]
FOR_CLIENTS_ONLY = [
    (asked(commands.Queue.DeclareOk, queue="x", message_count=0, consumer_count=0), (50, 11)),
    (commands.Confirm.SelectOk(), (85, 11)),
    (commands.Basic.CancelOk("x"), (60, 31)),
    (commands.Basic.ConsumeOk("x"), (60, 21)),
    (commands.Basic.QosOk(), (60, 11)),
    (commands.Tx.SelectOk(), (90, 11)),
    (commands.Channel.CloseOk(), (20, 41)),
    (commands.Channel.FlowOk(True), (20, 21)),
    (commands.Basic.Deliver("x", 1, False, "", ""), (60, 60)),
    (commands.Basic.Return(312, "x", "", ""), (60, 50)),
    (asked(commands.Basic.GetOk, delivery_tag=1, exchange="", routing_key="", message_count=0), (60, 71)),
]

FRAMES: list[Row] = [
    row("2.3.5: a bad frame end", [b"\1\0\1\0\0\0\x07" + DECLARE + b"x\0"],
        frame_error("type 1, all octets = <<0,50,0,10,0,0,120>>: {invalid_frame_end_marker,0}")),
    row("2.3.5: type 4", [frame(4, 1, b"x")], frame_error('type 4, all octets = <<"x">>: unknown_frame')),
    row("2.3.5: type 0", [frame(0, 1, b"")], frame_error("type 0, all octets = <<>>: unknown_frame")),
    row("2.3.5: type 255", [frame(255, 0, b"x")], frame_error('type 255, all octets = <<"x">>: unknown_frame')),
    row("4.2.7: a heartbeat with a payload", [frame(8, 0, b"abc")],
        frame_error('type 8, all octets = <<"abc">>: unknown_frame')),
    row("4.2.7: a heartbeat on a channel", [frame(8, 1, b"")], unexpected("type 8, all octets = <<>>")),
    row("4.2.7: a heartbeat on a channel that is not open", [frame(8, 9, b"")],
        unexpected("type 8, all octets = <<>>")),
    row("4.2.7: a heartbeat", [HEARTBEAT, PROBE], ALIVE),
    row("4.2.3: a frame larger than negotiated", [frame(3, 1, bytes(131_073))],
        frame_error("type 3, all octets = <<>>: {frame_too_large,131073,131064}")),
    row("4.2.3: the largest frame", [frame(3, 1, bytes(131_064))], unexpected(NOT_A_METHOD)),
    row("a client that does not count the overhead", [frame(3, 1, bytes(131_072))], unexpected(NOT_A_METHOD)),
    row("4.2.3: a frame of 4 GiB", [b"\1\0\1\xff\xff\xff\xff"[:7] + b"x"],
        frame_error("type 1, all octets = <<>>: {frame_too_large,4294967295,131064}")),
    row("a method frame of three bytes", [frame(1, 1, b"\0\x32\0")],
        frame_error("type 1, all octets = <<0,50,0>>: unknown_frame")),
    row("an empty method frame", [frame(1, 1, b"")], frame_error("type 1, all octets = <<>>: unknown_frame")),
    row("1.8, 503: an unknown class", [frame(1, 1, b"\0\x63\0\x0a")], unimplemented(99, 10)),
    row("1.8, 503: an unknown method", [frame(1, 1, b"\0\x32\0\x63")], unimplemented(50, 99)),
    row("1.8, 503: an unknown method of the connection", [frame(1, 0, b"\0\x0a\0\x63")], unimplemented(10, 99)),
    row("an unknown method on a channel that is not open", [frame(1, 7, b"\0\x63\0\x0a")], not_open(99, 10)),
    row("1.8, 501: arguments cut short", [frame(1, 1, DECLARE)], frame_error("cannot decode <<0,0>>", 50, 10)),
    row("1.8, 501: bytes behind the arguments", [frame(1, 1, DECLARE + b"\3okq\4\0\0\0\0zzz")],
        frame_error("cannot decode <<0,0,3,111,107,113,4,0,0,0,0,122,122,122>>", 50, 10)),
    row("1.8, 501: a short string beyond the frame", [frame(1, 1, DECLARE + b"\xffabc")],
        frame_error("cannot decode <<0,0,255,97,98,99>>", 50, 10)),
    row("1.8, 501: a table beyond the frame", [frame(1, 1, DECLARE + b"\2bt\4\0\0\3\xe8x")],
        frame_error("cannot decode <<0,0,2,98,116,4,0,0,3,232,120>>", 50, 10)),
    row("1.8, 501: a name that is not UTF-8", [frame(1, 1, DECLARE + b"\2\xff\xfe\0\0\0\0\0")],
        frame_error("Malformed UTF-8 in shortstr", 50, 10)),
    *(row(f"4.9: {method.name} on channel 0", [on_channel(method, 0)], out_of_state(*ids))
      for method, ids in ON_CHANNEL_0),
    *(row(f"2.2.4: {method.name} once open", [method], out_of_state(*ids)) for method, ids in AFTER_OPEN),
    *(row(f"1.8, 503: {method.name} from a client", [method], unimplemented(*ids))
      for method, ids in FOR_CLIENTS_ONLY),
    row("4.2.3: a header on channel 0", [frame(2, 0, b"\0\x3c" + bytes(12))],
        unexpected("type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>>")),
    row("4.2.3: a body on channel 0", [frame(3, 0, b"x")], unexpected('type 3, all octets = <<"x">>')),
    row("a channel opened twice", [commands.Channel.Open()],
        connection_close("CHANNEL_ERROR - second 'channel.open' seen", 20, 10)),
    row("a method on a channel that is not open", [on_channel(queue("x"), 7)], not_open(50, 10)),
    row("a publish on a channel that is not open", [on_channel(commands.Basic.Publish(), 7)], not_open(60, 40)),
    row("a close on a channel that is not open", [on_channel(CLOSE_CHANNEL, 7)], not_open(20, 40)),
    row("a close-ok on a channel that is not open", [on_channel(commands.Channel.CloseOk(), 7)], not_open(20, 41)),
    row("a header on a channel that is not open", [content_header(1, channel=7)], unexpected(NOT_A_METHOD)),
    row("a body there", [frame(3, 7, b"x")], unexpected(NOT_A_METHOD)),
    row("a method of the connection on a channel", [on_channel(OPEN, 1)], unimplemented(10, 40)),
    row("closing the connection on a channel", [on_channel(CLOSE, 1)], unimplemented(10, 50)),
    row("1.4.2.7: closing", [CLOSE], "Connection.CloseOk()", EOF),
    row("1.4.2.7: what follows a close is not read", [CLOSE, PROBE, b"garbage garbage"], "Connection.CloseOk()", EOF),
    row("update-secret", [commands.Connection.UpdateSecret("new", "expired"), PROBE],
        "Connection.UpdateSecretOk()", ALIVE),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), FRAMES)
def test_a_frame_is_answered(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


NESTED = b"\0\0\0\0"
for _ in range(100):
    field = b"\1a" + b"F" + NESTED
    NESTED = len(field).to_bytes(4, "big") + field

TABLES = [
    pytest.param(b"\0\0\0\4\1a?x", id="an unknown type"),
    pytest.param(b"\0\0\0\5\1aU\0\1", id="type U"),
    pytest.param(NESTED, id="a hundred nested tables"),
    pytest.param(b"\0\0\0\4\2\xff\xfeV", id="a name that is not UTF-8"),
]


@pytest.mark.parametrize("table", TABLES)
def test_1_8_illegal_values_in_a_table_are_a_syntax_error(peer: Peer, table: bytes) -> None:
    [answer] = peer.send(frame(1, 1, DECLARE + b"\2bt\0" + table)).receive()
    assert answer.startswith("Connection.Close 502 SYNTAX_ERROR - ")
    assert answer.endswith("(50,10)")


def test_1_8_a_table_whose_inner_text_exceeds_it_cannot_be_decoded(peer: Peer) -> None:
    [answer] = peer.send(frame(1, 1, DECLARE + b"\2bt\0\0\0\0\x08\1aS\0\0\xff\xffx")).receive()
    assert answer.startswith("Connection.Close 501 FRAME_ERROR - cannot decode <<0,0,2,98,116,0,")


ALL_TYPES = b"".join(
    name + value
    for name, value in [
        (b"\1t", b"t\1"), (b"\1b", b"b\xff"), (b"\1B", b"B\xff"), (b"\1s", b"s\xff\xff"), (b"\1u", b"u\xff\xff"),
        (b"\1I", b"I" + b"\xff" * 4), (b"\1i", b"i" + b"\xff" * 4), (b"\1l", b"l" + b"\xff" * 8),
        (b"\1L", b"L" + b"\xff" * 8), (b"\1f", b"f\0\0\0\0"), (b"\1d", b"d" + bytes(8)), (b"\1D", b"D\2\0\0\0\1"),
        (b"\1S", b"S\0\0\0\1x"), (b"\1x", b"x\0\0\0\1x"), (b"\1A", b"A\0\0\0\1V"), (b"\1T", b"T" + bytes(8)),
        (b"\1F", b"F\0\0\0\0"), (b"\1V", b"V"),
    ]
)  # fmt: skip


def test_4_2_5_5_every_type_of_table_value_is_decoded(peer: Peer) -> None:
    table = len(ALL_TYPES).to_bytes(4, "big") + ALL_TYPES
    assert peer.send(frame(1, 1, DECLARE + b"\3okq\0" + table)).receive() == [ALIVE]


# ---------------------------------------------------------------- content

EXPECTED_HEADER = unexpected("expected content header for class 60, got non content header frame instead", 60, 40)
EXPECTED_BODY = unexpected("expected content body, got non content body frame instead", 60, 40)
PUBLISH = commands.Basic.Publish(0, "", "okq")


def of_class(number: int) -> str:
    return unexpected(f"expected content header for class 60, got one for class {number} instead", 60, 40)


CONTENTS: list[Row] = [
    row("a header first", [content_header(1)], unexpected(NOT_A_METHOD)),
    row("a body first", [frame(3, 1, b"x")], unexpected(NOT_A_METHOD)),
    row("a method instead of the header", [PUBLISH, PROBE], EXPECTED_HEADER),
    row("R150: publish, publish", [PUBLISH, PUBLISH], EXPECTED_HEADER),
    row("a body instead of the header", [PUBLISH, frame(3, 1, b"x")], EXPECTED_HEADER),
    row("a method instead of the body", [PUBLISH, content_header(2), PROBE], EXPECTED_BODY),
    row("channel.close instead of the body", [PUBLISH, content_header(2), CLOSE_CHANNEL], EXPECTED_BODY),
    row("header, header", [PUBLISH, content_header(2), content_header(2)], EXPECTED_BODY),
    row("a body longer than announced", [PUBLISH, content_header(2), frame(3, 1, b"abc")],
        frame_error("content body exceeds the 2 bytes announced", 60, 40)),
    row("two bodies longer than announced", [PUBLISH, content_header(2), frame(3, 1, b"a"), frame(3, 1, b"bc")],
        frame_error("content body exceeds the 2 bytes announced", 60, 40)),
    row("a body after a content header without one", [PUBLISH, content_header(0), frame(3, 1, b"x")],
        unexpected(NOT_A_METHOD)),
    row("empty frames inside a body", [PUBLISH, content_header(2), frame(3, 1, b""), frame(3, 1, b"ab"), PROBE], ALIVE),
    row("4.2.6.1: class 50", [PUBLISH, content_header(1, class_id=50)], of_class(50)),
    row("4.2.6.1: class 99", [PUBLISH, content_header(0, class_id=99)], of_class(99)),
    row("4.2.6.1: weight 5", [PUBLISH, content_header(1, weight=5), frame(3, 1, b"x")], EXPECTED_HEADER),
    row("a header of three bytes", [PUBLISH, frame(2, 1, b"\0\x3c\0")],
        frame_error("type 2, all octets = <<0,60,0>>: unknown_frame")),
    row("a heartbeat inside a content", [PUBLISH, content_header(2), HEARTBEAT, frame(3, 1, b"ab"), PROBE], ALIVE),
    row("cluster-id, which is ignored", [PUBLISH, content_header(0, b"\0\4\1x"), PROBE], ALIVE),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), CONTENTS)
def test_4_2_6_a_content_has_an_order(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


PROPERTIES = [
    pytest.param(b"\x80\0", id="a property that is missing"),
    pytest.param(b"\0\0more", id="bytes behind the properties"),
    pytest.param(b"\x20\0\0\0\0\4\1a?x", id="an unknown type in the headers"),
    pytest.param(b"\x20\0\0\0\0\xff", id="headers cut short"),
]


@pytest.mark.parametrize("properties", PROPERTIES)
@pytest.mark.parametrize("size", [0, 1])
def test_1_8_malformed_properties_end_the_connection(peer: Peer, properties: bytes, size: int) -> None:
    peer.send(PUBLISH, content_header(size, properties), frame(3, 1, b"x") if size else b"")
    [answer] = peer.receive()
    assert answer.split(" ")[1] in ("501", "502")
    assert answer.endswith("(60,40)")


def test_contents_of_two_channels_may_be_interleaved(peer: Peer) -> None:
    peer.send(commands.Channel.Open(), channel=2).receive()
    one, two = publish("", "okq", b"oneone", pieces=3).on(1), publish("", "okq", b"twotwo", pieces=3).on(2)
    pieces = zip(split(one), split(two), strict=True)
    peer.send(PROBE, b"".join(a + b for a, b in pieces), PROBE)
    assert peer.receive()[-1] == ALIVE.replace("message_count=0", "message_count=2")


def split(data: bytes) -> list[bytes]:
    """Split ``data`` into frames."""
    frames = []
    while data:
        size = 8 + int.from_bytes(data[3:7], "big")
        frames.append(data[:size])
        data = data[size:]
    return frames


# ---------------------------------------------------------------- channels and their closing

ABSENT = channel_close("NOT_FOUND - no exchange 'nosuchx' in vhost '/'", 60, 40)
CLOSE_OK = commands.Channel.CloseOk()
REOPEN = commands.Channel.Open()
CHANNEL_ENDS: list[Row] = [
    row("1.5.2.5: requests before close-ok are ignored",
        [publish("nosuchx", ""), queue("late"), publish("", "t"), CLOSE_OK, REOPEN, queue("late", passive=True)],
        ABSENT, OPENED, channel_close("NOT_FOUND - no queue 'late' in vhost '/'", 50, 10)),
    row("opening it before close-ok", [publish("nosuchx", ""), REOPEN],
        ABSENT, connection_close("CHANNEL_ERROR - second 'channel.open' seen", 20, 10)),
    row("the client's close crosses ours", [publish("nosuchx", ""), CLOSE_CHANNEL, CLOSE_OK, REOPEN, PROBE],
        ABSENT, CHANNEL_CLOSED, OPENED, ALIVE),
    row("the same without any close-ok", [publish("nosuchx", ""), CLOSE_CHANNEL, REOPEN, PROBE],
        ABSENT, CHANNEL_CLOSED, OPENED, ALIVE),
    row("a client closes and opens again", [CLOSE_CHANNEL, REOPEN, PROBE], CHANNEL_CLOSED, OPENED, ALIVE),
    row("a method on a channel the client closed", [CLOSE_CHANNEL, queue("x")], CHANNEL_CLOSED, not_open(50, 10)),
    row("a content on a channel the client closed", [CLOSE_CHANNEL, publish("", "t")],
        CHANNEL_CLOSED, not_open(60, 40)),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), CHANNEL_ENDS)
def test_1_5_2_5_a_channel_is_closed_by_either_side(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


def test_1_4_2_6_more_channels_than_negotiated_are_refused(greeted: Peer) -> None:
    greeted.send(LOGIN, commands.Connection.TuneOk(2, 131_072, 0), OPEN).receive()
    for number in (7, 9):
        assert greeted.send(REOPEN, channel=number).receive() == [f"{OPENED} ch={number}"]
    text = "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    assert greeted.send(REOPEN, channel=1).receive() == [connection_close(text, 20, 10)]


def test_closing_a_channel_makes_room_for_another(greeted: Peer) -> None:
    greeted.send(LOGIN, commands.Connection.TuneOk(1, 131_072, 0), OPEN, REOPEN).receive()
    greeted.send(CLOSE_CHANNEL).receive()
    assert greeted.send(REOPEN, channel=65_535).receive() == [f"{OPENED} ch=65535"]


def test_1_4_2_7_after_the_brokers_close_only_close_ok_is_handled(peer: Peer) -> None:
    refused = connection_close("COMMAND_INVALID - unknown exchange type 'x'", 40, 10)
    assert peer.send(exchange("x", "x"), PROBE, publish("", "t"), frame(8, 0, b"")).receive() == [refused]
    assert peer.machine.state is State.CLOSING
    assert peer.send(commands.Connection.CloseOk()).receive() == [EOF]


def test_1_4_2_7_both_sides_close_at_once(peer: Peer) -> None:
    peer.force_close("closed by an operator")
    assert peer.send(CLOSE).receive() == [
        connection_close("CONNECTION_FORCED - closed by an operator"),
        "Connection.CloseOk()",
        EOF,
    ]


def test_320_an_operator_closes_the_connection(gateway: Gateway, peer: Peer) -> None:
    gateway.broker.connections.force_close("closed by an operator")
    assert peer.receive() == [connection_close("CONNECTION_FORCED - closed by an operator")]
    assert peer.send(commands.Connection.CloseOk()).receive() == [EOF]


def test_320_the_vhost_is_deleted(gateway: Gateway) -> None:
    gateway.broker.declare_vhost("lim")
    gateway.add_user("tenant", "secret", "lim")
    peer = gateway.connect(user="tenant", password="secret", vhost="lim")
    gateway.broker.delete_vhost("lim")
    assert peer.receive() == [connection_close("CONNECTION_FORCED - vhost 'lim' is deleted")]


def test_320_the_user_is_deleted(gateway: Gateway) -> None:
    gateway.add_user("tagged", "secret", "/")
    peer = gateway.connect(user="tagged", password="secret")
    gateway.broker.directory.remove_user("tagged")
    assert peer.receive() == [connection_close("CONNECTION_FORCED - user 'tagged' is deleted")]


def test_exclusive_queues_are_deleted_with_their_connection(gateway: Gateway, peer: Peer) -> None:
    peer.send(queue("mine", exclusive=True), CLOSE).receive()
    assert "mine" not in gateway.vhost.queue_by_name


def test_a_connection_has_the_capabilities_that_its_client_announced(gateway: Gateway) -> None:
    assert all(gateway.connect().machine.identity.has_capability(name) for name in ALL_CAPABILITIES)
    assert not gateway.connect(capabilities={"basic.nack": True}).machine.identity.has_capability("connection.blocked")
