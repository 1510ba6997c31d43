"""Streams: operations that streams do not support, and their refusals."""

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Arguments
from gateway.testing import FakeClock
from tests.conformance.amqp.tables import (
    Row,
    cancel,
    channel_close,
    connection_close,
    consume,
    declared,
    delete,
    delivered,
    furnish,
    get,
    nack,
    purge,
    queue_with,
    reject,
    row,
)
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import Sent, asked, publish

QOS_OK = "Basic.QosOk()"
CONSUMING = "Basic.ConsumeOk(consumer_tag='c')"
STREAM: Arguments = {"x-queue-type": "stream"}


def qos(count: int = 10, *, is_global: bool = False) -> commands.Basic.Qos:
    return commands.Basic.Qos(0, count, is_global)


def read(**arguments: object) -> commands.Basic.Consume:
    named = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return consume("s", arguments=named)


def bad(id: str, argument: str, value: object, wrong: str) -> Row:
    text = f"PRECONDITION_FAILED - invalid arg '{argument}' for queue 's' in vhost '/'{wrong}"
    sent: list[Sent] = [qos(), consume("s", arguments={argument: value})]
    return row(id, sent, QOS_OK, channel_close(text, 60, 20))


def bad_offset(id: str, value: object, shown: str) -> Row:
    return bad(id, "x-stream-offset", value, f": {{invalid_stream_offset_arg,{shown}}}")


REFUSED: list[Row] = [
    row("get", [get("s")],
        connection_close("NOT_IMPLEMENTED - basic.get not supported by stream queues queue 's' in vhost '/'", 60, 70)),
    row("get without acknowledgement", [get("s", no_ack=True)],
        connection_close("NOT_IMPLEMENTED - basic.get not supported by stream queues queue 's' in vhost '/'", 60, 70)),
    row("purge", [purge("s")],
        connection_close("NOT_IMPLEMENTED - queue.purge not supported by stream queues queue 's' in vhost '/'",
                         50, 30)),
    row("consume without prefetch", [consume("s")],
        channel_close("PRECONDITION_FAILED - consumer prefetch count is not set for 'queue 's' in vhost '/''", 60, 20)),
    row("consume with a shared prefetch alone", [qos(is_global=True), consume("s")], QOS_OK,
        channel_close("PRECONDITION_FAILED - consumer prefetch count is not set for 'queue 's' in vhost '/''", 60, 20)),
    row("consume without acknowledgement", [qos(), consume("s", no_ack=True)], QOS_OK,
        connection_close("NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queues queue 's' in "
                         "vhost '/'", 60, 20)),
    row("consume without acknowledgement nor prefetch", [consume("s", no_ack=True)],
        channel_close("PRECONDITION_FAILED - consumer prefetch count is not set for 'queue 's' in vhost '/''", 60, 20)),
    row("consume with a prefetch of its own and a shared one", [qos(), qos(is_global=True), consume("s")],
        QOS_OK, QOS_OK,
        connection_close("NOT_IMPLEMENTED - queue 's' in vhost '/' does not support global qos", 60, 20)),
    bad("a priority", "x-priority", 5, " of queue type rabbit_stream_queue"),
    bad_offset("an offset as text", "5", '{longstr,<<"5">>}'),
    bad_offset("an unknown position", "bogus", '{longstr,<<"bogus">>}'),
    bad_offset("an empty offset", "", '{longstr,<<"">>}'),
    bad_offset("an empty interval", "0s", '{longstr,<<"0s">>}'),
    bad_offset("an interval without a unit", "5x", '{longstr,<<"5x">>}'),
    bad_offset("capitals", "FIRST", '{longstr,<<"FIRST">>}'),
    bad_offset("a boolean for an offset", True, "{bool,true}"),
    row("a stream that is not durable", [queue_with("new", STREAM, durable=False)],
        channel_close("PRECONDITION_FAILED - invalid property 'non-durable' for queue 'new' in vhost '/'", 50, 10)),
    row("an exclusive stream", [queue_with("new", STREAM, durable=True, exclusive=True)],
        channel_close("PRECONDITION_FAILED - invalid property 'exclusive-owner' for queue 'new' in vhost '/'", 50, 10)),
    row("a stream as a classic queue", [queue_with("s", {}, durable=True)],
        channel_close("PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 's' in vhost '/': received "
                      "none but current is the value 'stream' of type 'longstr'", 50, 10)),
]  # fmt: skip


@pytest.fixture
def streams() -> Gateway:
    """A broker with a stream ``s`` of three messages, on a fake clock."""
    gateway = Gateway(clock=FakeClock())
    furnish(gateway)
    gateway.vhost.declare_queue("s", is_durable=True, arguments=STREAM)
    peer = gateway.connect()
    peer.send(publish("", "s", b"0"), publish("", "s", b"1"), publish("", "s", b"2")).receive()
    return gateway


def answered(streams: Gateway, peer: Peer, *sent: Sent) -> list[str]:
    """Send frames, settle the broker, and return the answers."""
    received = peer.send(*sent).receive()
    for _ in range(3):
        streams.settle()
        assert isinstance(streams.broker.clock, FakeClock)
        streams.broker.clock.advance(0)
        received += peer.receive()
    return received


@pytest.mark.parametrize(("sent", "answers"), REFUSED)
def test_unsupported_operations_on_streams_are_refused(streams: Gateway, sent: list[Sent], answers: list[str]) -> None:
    assert answered(streams, streams.connect(), *sent) == answers


DELIVERED = [delivered("c", tag, "s", b"%d" % (tag - 1)) for tag in (1, 2, 3)]

ANSWERS: list[Row] = [
    row("from the first", [qos(), read(stream_offset="first")], QOS_OK, CONSUMING, *DELIVERED),
    row("prefetch limits deliveries", [qos(2), read(stream_offset="first")], QOS_OK, CONSUMING, *DELIVERED[:2]),
    row("an ack is credit", [qos(2), read(stream_offset="first"), asked(commands.Basic.Ack, delivery_tag=0,
        multiple=True)], QOS_OK, CONSUMING, *DELIVERED[:2]),
    row("an unknown argument", [qos(), read(stream_offset="last", stream_bogus=5)], QOS_OK, CONSUMING,
        delivered("c", 1, "s", b"2")),
    row("exclusive is ignored", [qos(), consume("s", exclusive=True), consume("s", "d")], QOS_OK, CONSUMING,
        "Basic.ConsumeOk(consumer_tag='d')"),
    row("cancel", [qos(), read(stream_offset="next"), cancel(), publish("", "s")], QOS_OK, CONSUMING,
        "Basic.CancelOk(consumer_tag='c')"),
    row("delete with a consumer", [qos(), read(), delete("s")], QOS_OK, CONSUMING,
        "Basic.Cancel(consumer_tag='c', nowait=True)", "Queue.DeleteOk(message_count=3)"),
    row("declared again, with its messages", [queue_with("s", STREAM, durable=True)], declared("s", 3)),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), ANSWERS)
def test_reading_is_answered(streams: Gateway, sent: list[Sent], answers: list[str]) -> None:
    assert answered(streams, streams.connect(), *sent) == answers


SETTLED: list[Row] = [
    row("ack", [asked(commands.Basic.Ack, delivery_tag=1)], DELIVERED[2]),
    row("ack of both", [asked(commands.Basic.Ack, delivery_tag=2, multiple=True)], DELIVERED[2]),
    row("nack", [nack(1)], DELIVERED[2]),
    row("nack without requeue", [nack(1, requeue=False)], DELIVERED[2]),
    row("reject", [reject(1, requeue=False)], DELIVERED[2]),
    row("an unknown tag", [asked(commands.Basic.Ack, delivery_tag=9)],
        channel_close("PRECONDITION_FAILED - unknown delivery tag 9", 60, 80)),
    row("recover requeues nothing", [commands.Basic.Recover(True)], "Basic.RecoverOk()", DELIVERED[2]),
    row("a transaction", [asked(commands.Tx.Select), asked(commands.Basic.Ack, delivery_tag=2, multiple=True),
        asked(commands.Tx.Commit)], "Tx.SelectOk()", "Tx.CommitOk()", DELIVERED[2]),
    row("a transaction that is rolled back", [asked(commands.Tx.Select), asked(commands.Basic.Ack, delivery_tag=1),
        asked(commands.Tx.Rollback)], "Tx.SelectOk()", "Tx.RollbackOk()"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "answers"), SETTLED)
def test_settling_returns_credit(streams: Gateway, sent: list[Sent], answers: list[str]) -> None:
    peer = streams.connect()
    assert answered(streams, peer, qos(2), read(stream_offset="first"))[2:] == DELIVERED[:2]
    assert answered(streams, peer, *sent) == answers
