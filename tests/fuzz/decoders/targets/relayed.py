"""The relay of AMQP clients between leaders: any bytes of both sides, and leaders that are lost at any moment."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pamqp import commands

from gateway_amqp.methods import encode_method
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.fuzz.decoders.corpus import TO_BROKER, TO_CLIENT, frames_of
from tests.fuzz.decoders.laws import require
from tests.fuzz.decoders.target import Target

#: What happens next, as the first byte of a record; a length of two bytes and so many bytes follow the first two.
_CLIENT, _LEADER, _LOST, _FOUND = range(4)

TOKENS: Final = (
    bytes((_LOST,)), bytes((_FOUND,)), b"\x00\x0a\x00\x32", b"\x00\x3c\x00\x3c",
    b"\x00\x3c\x00\x28", b"\x00\x3c\x00\x50",
    b"\x00\x14\x00\x28", b"\x00\x5a\x00\x14", b"\xce", b"\x08\x00\x00\x00\x00\x00\x00\xce", b"\x01\x00\x01\x00\x00\x00",
)  # fmt: skip


def _relayed(data: bytes) -> None:
    """Until a leader is lost, both sides get what the other one sent, or the beginning of it; nothing is raised."""
    relay = RelayedConnection()
    sent = {_CLIENT: b"", _LEADER: b""}
    got = {_CLIENT: b"", _LEADER: b""}
    has_leader = is_first = True
    for what, piece in _records(data):
        if what == _LOST and has_leader:
            if not relay.leader_lost():
                return
            has_leader = is_first = False
        elif what == _FOUND and not has_leader:
            has_leader = True
            relay.leader_found()
        elif what == _CLIENT:
            relay.receive_from_client(piece)
            sent[_CLIENT] += piece
        elif what == _LEADER and has_leader:
            relay.receive_from_leader(piece)
            sent[_LEADER] += piece
        got[_CLIENT] += relay.take_for_client()
        got[_LEADER] += relay.take_for_leader()
        if is_first and not relay.has_leader_ended:
            require(sent[_LEADER].startswith(got[_CLIENT]), "the client gets what the leader sent", got, sent)
            require(sent[_CLIENT].startswith(got[_LEADER]), "the leader gets what the client sent", got, sent)
        if relay.has_leader_ended or relay.is_over:
            return


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        what = data[at] & 3
        at += 1
        size = 0
        if what in (_CLIENT, _LEADER):
            size = int.from_bytes(data[at : at + 2])
            at += 2
        yield what, data[at : at + size]
        at += size


def _record(what: int, *pieces: bytes) -> bytes:
    joined = b"".join(pieces)
    return bytes((what,)) + (len(joined).to_bytes(2) + joined if what in (_CLIENT, _LEADER) else b"")


def _of(channel: int, *methods: Any) -> bytes:
    return b"".join(encode_method(channel, method) for method in methods)


_CONTENT: Final = b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0" + (2).to_bytes(8) + b"\0\0\xce\x03\0\x01\0\0\0\x02hi\xce"
_PUBLISH: Final = _of(1, commands.Basic.Publish(0, "", "q")) + _CONTENT


def _login_of_client() -> bytes:
    start_ok = commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")
    return PROTOCOL_HEADER + _of(0, start_ok, commands.Connection.TuneOk(9, 4096, 10), commands.Connection.Open("/"))


def _login_of_leader() -> bytes:
    start = commands.Connection.Start(0, 9, {}, "PLAIN", "en_US")
    return _of(0, start, commands.Connection.Tune(9, 4096, 10), commands.Connection.OpenOk())


def _seeds() -> Iterable[bytes]:
    asked = _of(1, commands.Channel.Open(), commands.Confirm.Select(), commands.Basic.Consume(0, "q", "t"))
    answered = _of(1, commands.Channel.OpenOk(), commands.Confirm.SelectOk(), commands.Basic.ConsumeOk("t"))
    deliver = _of(1, commands.Basic.Deliver("t", 1, False, "", "q")) + _CONTENT
    begin = _record(_CLIENT, _login_of_client(), asked) + _record(_LEADER, _login_of_leader(), answered)
    secret = _record(_CLIENT, _of(0, commands.Connection.UpdateSecret("new", "it expires")))
    again = _record(_LOST) + _record(_FOUND) + _record(_LEADER, _login_of_leader())
    checked = _of(1, commands.Channel.OpenOk(), commands.Queue.DeclareOk("q", 0, 0), commands.Channel.CloseOk())
    settled = _record(_CLIENT, _of(1, commands.Basic.Ack(1)), _of(1, commands.Basic.Ack(2)))
    cancelled = _record(_LEADER, _of(1, commands.Basic.Ack(1), commands.Basic.Cancel("t", nowait=True)))
    yield (
        begin
        + _record(_CLIENT, _PUBLISH)
        + _record(_LEADER, deliver)
        + secret
        + again
        + _record(_LEADER, checked)
        + (_record(_LEADER, answered, deliver) + settled + cancelled)
    )
    recorded_client, recorded_leader = frames_of("amqp", TO_BROKER), frames_of("amqp", TO_CLIENT)
    for at in range(0, min(len(recorded_client), len(recorded_leader)), 40):
        yield begin + _record(_CLIENT, *recorded_client[at : at + 8]) + _record(_LEADER, *recorded_leader[at : at + 8])


TARGETS: Final = (
    Target(
        "amqp-relayed",
        _relayed,
        (
            "gateway_amqp.resuming.relayed_connection:RelayedConnection.receive_from_client",
            "gateway_amqp.resuming.relayed_connection:RelayedConnection.receive_from_leader",
            "gateway_amqp.resuming.relayed_channel:RelayedChannel.from_client",
            "gateway_amqp.resuming.relayed_channel:RelayedChannel.from_leader",
            "gateway_amqp.resuming.channel_settings:ChannelSettings.cancelled",
            "gateway_amqp.resuming.delivery_tags:DeliveryTags.for_client",
            "gateway_amqp.resuming.delivery_tags:DeliveryTags.for_leader",
            "gateway_amqp.resuming.login:RelayedLogin.ask",
            "gateway_amqp.resuming.login:RelayedLogin.note",
            "gateway_amqp.resuming.login:RelayedLogin.note_limit",
            "gateway_amqp.resuming.requests:UnansweredRequests.answered",
            "gateway_amqp.resuming.whole_contents:content_end",
        ),
        _seeds,
        TOKENS,
    ),
)
