"""406: entities that differ, are in use or not empty, invalid arguments, and unknown delivery tags."""

from typing import Any

import pytest
from pamqp import commands

from gateway.kernel.messages.long import Long
from gateway.kernel.messages.message import Value
from tests.conformance.amqp.tables import (
    ALIVE,
    PROBE,
    Row,
    ack,
    bind,
    channel_close,
    connection_close,
    consume,
    declared,
    delete,
    delete_exchange,
    exchange,
    get,
    got,
    nack,
    passes,
    queue,
    queue_with,
    reject,
    row,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Sent, asked, publish


def inequivalent(argument: str, entity: str, difference: str, *, by: tuple[int, int] = (50, 10)) -> str:
    text = f"PRECONDITION_FAILED - inequivalent arg '{argument}' for {entity} in vhost '/': {difference}"
    return channel_close(text, *by)


def received(new: str, current: str) -> str:
    return f"received '{new}' but current is '{current}'"


def added(value: str, type: str) -> str:
    return f"received the value '{value}' of type '{type}' but current is none"


def redeclared(id: str, first: dict[str, Value], second: dict[str, Value], *difference: str) -> Row:
    """Return a row that declares the queue ``q`` twice; refused with ``difference`` for its first argument, or
    accepted.
    """
    last = inequivalent(difference[0], "queue 'q'", difference[1]) if difference else declared("q")
    return row(id, [queue_with("q", first), queue_with("q", second)], declared("q"), last)


def exchange_differs(id: str, declare: commands.Exchange.Declare, argument: str, difference: str) -> Row:
    return row(id, [declare], inequivalent(argument, f"exchange '{declare.exchange}'", difference, by=(40, 10)))


INEQUIVALENT: list[Row] = [
    row("R10: durable queue declared transient", [queue("d")],
        inequivalent("durable", "queue 'd'", received("false", "true"))),
    row("R10: transient queue declared durable", [queue("t", durable=True)],
        inequivalent("durable", "queue 't'", received("true", "false"))),
    row("R10: auto-delete", [queue("t", auto_delete=True)],
        inequivalent("auto_delete", "queue 't'", received("true", "false"))),
    row("R10: the first difference is told", [queue("t", durable=True, auto_delete=True)],
        inequivalent("durable", "queue 't'", received("true", "false"))),
    redeclared("R50: an argument more", {}, {"x-message-ttl": 100}, "x-message-ttl", added("100", "signedint")),
    redeclared("R50: an argument less", {"x-message-ttl": 100}, {}, "x-message-ttl",
               "received none but current is the value '100' of type 'signedint'"),
    redeclared("R50: another value", {"x-message-ttl": 100}, {"x-message-ttl": 200}, "x-message-ttl",
               received("200", "100")),
    redeclared("R50: a whole number and another type of the same value", {"x-message-ttl": 10}, {"x-message-ttl": 10.0},
               "x-message-ttl", received("10.0", "10")),
    redeclared("R50: a whole number of another width", {"x-message-ttl": 10}, {"x-message-ttl": Long(10)}),
    redeclared("R50: text", {"x-dead-letter-exchange": "a"}, {"x-dead-letter-exchange": "b"},
               "x-dead-letter-exchange", received("b", "a")),
    redeclared("R50: text more", {}, {"x-dead-letter-exchange": "b"}, "x-dead-letter-exchange",
               added("b", "longstr")),
    redeclared("R50: x-max-priority", {}, {"x-max-priority": 5}, "x-max-priority", added("5", "signedint")),
    redeclared("R50: x-queue-mode", {}, {"x-queue-mode": "lazy"}, "x-queue-mode", added("lazy", "longstr")),
    redeclared("R50: x-single-active-consumer", {}, {"x-single-active-consumer": True}, "x-single-active-consumer",
               added("true", "bool")),
    redeclared("R49: unknown arguments may differ", {"x-foo": 1}, {"x-foo": 2}),
    redeclared("R49: an unknown argument more", {}, {"x-foo": 1}),
    redeclared("R49: an argument without x-", {}, {"foo": 1}),
    redeclared("R50: the default type named", {}, {"x-queue-type": "classic"}),
    exchange_differs("R10: exchange type", exchange("xd", "fanout", durable=True), "type",
                     received("fanout", "direct")),
    exchange_differs("R10: durable exchange declared transient", exchange("xd"), "durable", received("false", "true")),
    exchange_differs("R10: transient exchange declared durable", exchange("xf", "fanout", durable=True), "durable",
                     received("true", "false")),
    exchange_differs("R10: auto-delete exchange", exchange("xf", "fanout", auto_delete=True), "auto_delete",
                     received("true", "false")),
    exchange_differs("R10: internal exchange", exchange("xf", "fanout", internal=True), "internal",
                     received("true", "false")),
    exchange_differs("R24: alternate exchange", exchange("xf", "fanout", arguments={"alternate-exchange": "a"}),
                     "alternate-exchange", added("a", "longstr")),
    row("R49: an unknown argument of an exchange", [exchange("xf", "fanout", arguments={"x-foo": 1})],
        "Exchange.DeclareOk()"),
    row("R24: an alternate exchange that is no text",
        [exchange("xae", "fanout", arguments={"alternate-exchange": 1})],
        channel_close("PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'xae' "
                      "in vhost '/'", 40, 10)),
]  # fmt: skip


@pytest.mark.parametrize(("width", "same"), [(b"b\x64", True), (b"l" + bytes(7) + b"\x64", True),
                                             (b"S\0\0\0\x03100", False)])  # fmt: skip
def test_r50_integers_are_compared_by_value_regardless_of_width(peer: Peer, width: bytes, same: bool) -> None:
    field = b"\x0dx-message-ttl" + width
    table = len(field).to_bytes(4, "big") + field
    method = b"\x00\x32\x00\x0a\0\0\x01q\0" + table
    peer.send(queue_with("q", {"x-message-ttl": 100})).receive()
    [answer] = peer.send(b"\x01\0\x01" + len(method).to_bytes(4, "big") + method + b"\xce").receive()
    assert (answer == declared("q")) is same


IN_USE: list[Row] = [
    row("if-unused with a consumer", [consume("t"), delete("t", if_unused=True)],
        "Basic.ConsumeOk(consumer_tag='c')",
        channel_close("PRECONDITION_FAILED - queue 't' in vhost '/' in use", 50, 40)),
    row("if-empty with a message", [publish("", "t"), delete("t", if_empty=True)],
        channel_close("PRECONDITION_FAILED - queue 't' in vhost '/' not empty", 50, 40)),
    row("both, with a consumer", [consume("t"), delete("t", if_unused=True, if_empty=True)],
        "Basic.ConsumeOk(consumer_tag='c')",
        channel_close("PRECONDITION_FAILED - queue 't' in vhost '/' in use", 50, 40)),
    row("both, when neither holds", [delete("t", if_unused=True, if_empty=True)], "Queue.DeleteOk(message_count=0)"),
    row("an exchange if-unused while bound", [delete_exchange("xused", if_unused=True)],
        channel_close("PRECONDITION_FAILED - exchange 'xused' in vhost '/' in use", 40, 20)),
    row("an exchange if-unused when it is not", [delete_exchange("xf", if_unused=True)], "Exchange.DeleteOk()"),
]  # fmt: skip


def unknown(tag: int, method: int) -> str:
    return channel_close(f"PRECONDITION_FAILED - unknown delivery tag {tag}", 60, method)


#: One message in ``t``, delivered by a get.
FETCH: list[Sent] = [publish("", "t"), get("t")]

TAGS: list[Row] = [
    row("R87: ack", [ack(1)], unknown(1, 80)),
    row("R87: ack of a high tag", [ack(99)], unknown(99, 80)),
    row("R87: ack of tag 0 alone", [ack(0)], unknown(0, 80)),
    passes("1.8.3.13: tag 0 with multiple means all, even if there are none", ack(0, multiple=True)),
    row("R87: multiple up to an unknown tag", [ack(5, multiple=True)], unknown(5, 80)),
    row("R87: nack", [nack(1)], unknown(1, 120)),
    passes("nack of all, even if there are none", nack(0, multiple=True)),
    row("R87: reject", [reject(1)], unknown(1, 90)),
    row("R87: ack twice", [*FETCH, ack(1), ack(1)], got(1, "t"), unknown(1, 80)),
    row("R86: ack of a delivery with no-ack", [publish("", "t"), get("t", no_ack=True), ack(1)],
        got(1, "t"), unknown(1, 80)),
    row("R87: multiple above the highest tag", [*FETCH, ack(7, multiple=True)], got(1, "t"), unknown(7, 80)),
    row("R87: ack after a reject", [*FETCH, reject(1), ack(1)], got(1, "t"), unknown(1, 80)),
    row("R87: tags are the channel's own", [*FETCH, PROBE, ack(2)], got(1, "t"), ALIVE, unknown(2, 80)),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), [*INEQUIVALENT, *IN_USE, *TAGS])
def test_a_failed_precondition_is_refused(peer: Peer, sent: list[Sent], answers: list[str]) -> None:
    assert peer.send(*sent).receive() == answers


def invalid(reason: str) -> str:
    return f"invalid arg '{{}}' for queue 'arg' in vhost '/': {reason}"


def expected_integer(type: str) -> str:
    return invalid(f'"expected integer, got {type}"')


def unacceptable(type: str) -> str:
    return invalid(f"{{unacceptable_type,{type}}}")


OF_ANOTHER_TYPE = "invalid arg '{}' for queue 'arg' in vhost '/' of queue type rabbit_classic_queue"
INTEGERS = ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-max-priority"]
NO_INTEGERS: list[tuple[Value, str]] = [
    ("abc", "longstr"),
    ("5", "longstr"),
    (True, "bool"),
    (1.5, "double"),
    (None, "void"),
    ([1], "array"),
    ({}, "table"),
]
TOO_LARGE = 1 << 40
TEN_YEARS_MS = 315_360_000_000
BAD_ARGUMENTS: list[tuple[str, Value, str]] = [
    *((name, value, expected_integer(type)) for name in INTEGERS for value, type in NO_INTEGERS),
    *((name, -1, invalid("{value_negative,-1}")) for name in INTEGERS),
    ("x-message-ttl", TOO_LARGE, invalid(f"{{value_too_large,{TOO_LARGE}}}")),
    ("x-message-ttl", TEN_YEARS_MS + 1, invalid(f"{{value_too_large,{TEN_YEARS_MS + 1}}}")),
    ("x-expires", 0, invalid("{value_zero,0}")),
    ("x-expires", TOO_LARGE, invalid(f"{{value_too_large,{TOO_LARGE}}}")),
    ("x-expires", TEN_YEARS_MS + 1, invalid(f"{{value_too_large,{TEN_YEARS_MS + 1}}}")),
    ("x-max-priority", TOO_LARGE, invalid(f"{{max_value_exceeded,{TOO_LARGE}}}")),
    ("x-max-priority", 256, invalid("{max_value_exceeded,256}")),
    ("x-overflow", "bad", invalid("invalid_overflow")),
    ("x-overflow", 1, unacceptable("signedint")),
    ("x-dead-letter-exchange", 1, "invalid type 'signedint' for arg '{}' in queue 'arg' in vhost '/'"),
    ("x-dead-letter-exchange", True, "invalid type 'bool' for arg '{}' in queue 'arg' in vhost '/'"),
    ("x-dead-letter-routing-key", "k", invalid("routing_key_but_no_dlx_defined")),
    ("x-dead-letter-routing-key", 1, unacceptable("signedint")),
    ("x-single-active-consumer", 1, unacceptable("signedint")),
    ("x-single-active-consumer", "true", unacceptable("longstr")),
    ("x-queue-mode", "bad", invalid("\"unsupported queue mode 'bad'\"")),
    ("x-queue-mode", 1, unacceptable("signedint")),
    ("x-queue-version", 3, invalid("\"unsupported queue version '3'\"")),
    ("x-queue-version", "2", expected_integer("longstr")),
    ("x-queue-type", "bad", invalid("\"unsupported queue type 'bad'\"")),
    ("x-queue-type", 1, unacceptable("signedint")),
    ("x-quorum-initial-group-size", 3, OF_ANOTHER_TYPE),
    ("x-max-age", "1D", OF_ANOTHER_TYPE),
]
GOOD_ARGUMENTS: list[tuple[str, Value]] = [
    ("x-message-ttl", 0),
    ("x-message-ttl", TEN_YEARS_MS),
    ("x-max-length", 0),
    ("x-max-length", TOO_LARGE),
    ("x-max-length-bytes", 0),
    ("x-max-length-bytes", TOO_LARGE),
    ("x-max-priority", 0),
    ("x-max-priority", 255),
    ("x-overflow", "reject-publish"),
    ("x-overflow", "reject-publish-dlx"),
    ("x-overflow", "drop-head"),
    ("x-dead-letter-exchange", ""),
    ("x-dead-letter-exchange", "nosuchx"),
    ("x-single-active-consumer", True),
    ("x-single-active-consumer", False),
    ("x-queue-mode", "lazy"),
    ("x-queue-mode", "default"),
    ("x-queue-version", 1),
    ("x-queue-version", 2),
    ("x-queue-type", "classic"),
    ("x-queue-master-locator", "bad"),
    ("x-ha-policy", "all"),
]


@pytest.mark.parametrize(("name", "value", "reason"), BAD_ARGUMENTS)
def test_r40_to_r48_an_invalid_queue_argument_is_refused(peer: Peer, name: str, value: Value, reason: str) -> None:
    text = f"PRECONDITION_FAILED - {reason.replace('{}', name, 1) if '{}' in reason else reason}"
    assert peer.send(queue_with("arg", {name: value})).receive() == [channel_close(text, 50, 10)]


@pytest.mark.parametrize(("name", "value"), GOOD_ARGUMENTS)
def test_r40_to_r49_a_valid_queue_argument_is_accepted(peer: Peer, name: str, value: Value) -> None:
    assert peer.send(queue_with("arg", {name: value})).receive() == [declared("arg")]


def test_r41_a_dead_letter_key_requires_an_exchange(peer: Peer) -> None:
    arguments: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"}
    assert peer.send(queue_with("arg", arguments)).receive() == [declared("arg")]


EXCHANGE_TYPES = [
    ("nosuchtype", "unknown exchange type 'nosuchtype'"),
    ("", "invalid exchange type ''"),
    ("Direct", "unknown exchange type 'Direct'"),
]


@pytest.mark.parametrize(("type", "reason"), EXCHANGE_TYPES)
@pytest.mark.parametrize("name", ["new", "xd", "amq.new"])
def test_r16_an_unknown_exchange_type_ends_the_connection(peer: Peer, name: str, type: str, reason: str) -> None:
    assert peer.send(exchange(name, type)).receive() == [connection_close(f"COMMAND_INVALID - {reason}", 40, 10)]


X_MATCH: list[tuple[Any, str]] = [
    ("bad", 'value <<"bad">>; expected all, any, all-with-x, or any-with-x'),
    ("", "value <<>>; expected all, any, all-with-x, or any-with-x"),
    ("ALL", 'value <<"ALL">>; expected all, any, all-with-x, or any-with-x'),
    (1, "type signedint (value 1); expected longstr"),
    (True, "type bool (value true); expected longstr"),
    (None, "type void (value undefined); expected longstr"),
]


@pytest.mark.parametrize(("value", "reason"), X_MATCH)
def test_r15_an_unknown_x_match_is_refused(peer: Peer, value: Value, reason: str) -> None:
    text = f"PRECONDITION_FAILED - Invalid x-match field {reason}"
    binding = asked(commands.Queue.Bind, queue="t", exchange="amq.headers", arguments={"x-match": value})
    assert peer.send(binding).receive() == [channel_close(text, 50, 20)]


@pytest.mark.parametrize("value", ["all", "any", "all-with-x", "any-with-x"])
def test_r15_the_four_modes_of_x_match_are_accepted(peer: Peer, value: str) -> None:
    assert peer.send(bind("t", "amq.headers", arguments={"x-match": value})).receive() == ["Queue.BindOk()"]


def test_x_match_is_checked_by_headers_exchanges_only(peer: Peer) -> None:
    assert peer.send(bind("t", "xd", arguments={"x-match": "bad"})).receive() == ["Queue.BindOk()"]


def test_a_channel_error_does_not_affect_other_channels(gateway: Gateway, peer: Peer) -> None:
    peer.send(commands.Channel.Open(), channel=2).receive()
    peer.send(publish("nosuchx", ""))
    peer.send(publish("nosuchy", ""), channel=2)
    assert peer.receive() == [
        channel_close("NOT_FOUND - no exchange 'nosuchx' in vhost '/'", 60, 40),
        channel_close("NOT_FOUND - no exchange 'nosuchy' in vhost '/'", 60, 40) + " ch=2",
    ]
