"""The relays of clients between leaders: any bytes of both sides, and leaders that are lost at any moment."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from pamqp import commands

from gateway.net.forwarding.resumable import Resumable
from gateway_amqp.methods import encode_method
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_amqp.tuning import PROTOCOL_HEADER
from gateway_mqtt.resuming.relayed_session import RelayedSession
from gateway_stomp.resuming.relayed_connection import RelayedStompConnection
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


def _relayed(relay: Resumable, data: bytes) -> None:
    """Until a leader is lost, both sides get what the other one sent, or the beginning of it; nothing is raised."""
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
        got[_CLIENT] += relay.waiting.take_for_client()
        got[_LEADER] += relay.waiting.take_for_leader()
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
    yield begin + _record(_LOST) + _record(_CLIENT, _PUBLISH, asked) + _record(_FOUND) + _record(_LEADER, answered)
    recorded_client, recorded_leader = frames_of("amqp", TO_BROKER), frames_of("amqp", TO_CLIENT)
    for at in range(0, min(len(recorded_client), len(recorded_leader)), 40):
        yield begin + _record(_CLIENT, *recorded_client[at : at + 8]) + _record(_LEADER, *recorded_leader[at : at + 8])


_MQTT_TOKENS: Final = (
    *(bytes((kind << 4 | 2,)) for kind in range(1, 16)), b"\x00\x01\x00\x02", b"\xe0\x01\x8b", b"\x03\x23\x00\x01",
)  # fmt: skip


def _mqtt_seeds() -> Iterable[bytes]:
    connect = {5: b"\x10\x15\0\4MQTT\5\0\0\x3c\5\x11\0\0\0\x3c\0\3ann", 4: b"\x10\x0f\0\4MQTT\4\2\0\x3c\0\3ann"}
    answer = {5: b"\x20\3\0\0\0", 4: b"\x20\2\0\0"}
    none = {5: b"\0", 4: b""}
    recorded_client, recorded_leader = frames_of("mqtt", TO_BROKER), frames_of("mqtt", TO_CLIENT)
    for version in (4, 5):
        begin = _record(_CLIENT, connect[version]) + _record(_LEADER, answer[version])
        again = _record(_LOST) + _record(_FOUND) + _record(_LEADER, answer[version])
        subscribe, suback = b"\0\7" + none[version] + b"\0\1a\1", b"\0\7" + none[version] + b"\1"
        asked = b"\x82" + bytes((len(subscribe),)) + subscribe, b"\x90" + bytes((len(suback),)) + suback
        own = b"\x90" + bytes((len(suback),)) + b"\0\1" + suback[2:]
        left = b"\xa2" + bytes((len(subscribe) - 1,)) + subscribe[:-1], b"\xb0" + bytes((len(suback),)) + suback
        publish = b"\0\1a\0\1" + none[version] + b"hi"
        sent = b"\x34" + bytes((len(publish),)) + publish
        yield (
            begin
            + _record(_CLIENT, asked[0])
            + _record(_LEADER, asked[1], sent)
            + _record(_CLIENT, b"\x50\2\0\1", sent)
            + _record(_LEADER, b"\x62\2\0\1\x50\2\0\1")
            + _record(_CLIENT, b"\x70\2\0\1\x62\2\0\1", left[0])
            + _record(_LEADER, left[1])
            + again
            + _record(_LEADER, own)
        )
        for at in range(0, min(len(recorded_client), len(recorded_leader)), 20):
            sides = _record(_CLIENT, *recorded_client[at : at + 4]), _record(_LEADER, *recorded_leader[at : at + 4])
            yield begin + sides[0] + sides[1] + again
    alias = b"\x30\x07\0\1a\3\x23\0\1\x30\x06\0\0\3\x23\0\1"
    yield _record(_CLIENT, connect[5], alias) + _record(_LEADER, answer[5])


_STOMP_TOKENS: Final = (
    *(verb + b"\n" for verb in b"SEND SUBSCRIBE UNSUBSCRIBE ACK BEGIN COMMIT RECEIPT ERROR".split()),
    b"receipt:1\n", b"transaction:t\n", b"id:T_1@@s@@1\n", b"content-length:2\n",
    b"x-stream-offset:5\n", b"\n\n", b"\0",
)  # fmt: skip


def _stomp_seeds() -> Iterable[bytes]:
    begin = _record(_CLIENT, b"CONNECT\naccept-version:1.2\n\n\0")
    welcome = _record(_LEADER, b"CONNECTED\nversion:1.2\nsession:s\nheart-beat:5000,0\n\n\0")
    again = _record(_LOST) + _record(_FOUND) + _record(_LEADER, b"CONNECTED\nversion:1.2\nsession:t\n\n\0")
    subscribe = b"SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client\nreceipt:2\nx-stream-offset:first\n\n\0"
    message = b"MESSAGE\nsubscription:1\nack:T_1@@s@@1\nx-stream-offset:5\n\nhi\0"
    kept = b"BEGIN\ntransaction:t\n\n\0SEND\ntransaction:t\nreceipt:3\n\nhi\0SEND\nreceipt:4\ncontent-length:2\n\nhi\0"
    yield (
        begin
        + welcome
        + _record(_CLIENT, subscribe, kept)
        + _record(_LEADER, message, b"RECEIPT\nreceipt-id:3\n\n\0")
        + again
        + _record(_CLIENT, b"ACK\nid:T_1@@s@@1\n\n\0")
    )
    yield begin + welcome + _record(_CLIENT, b"SEND\ndestination:/queue/q\n\nhel") + _record(_CLIENT, b"lo\0")
    recorded_client, recorded_leader = frames_of("stomp", TO_BROKER), frames_of("stomp", TO_CLIENT)
    for at in range(0, min(len(recorded_client), len(recorded_leader)), 20):
        sides = _record(_CLIENT, *recorded_client[at : at + 4]), _record(_LEADER, *recorded_leader[at : at + 4])
        yield begin + welcome + sides[0] + sides[1] + again


TARGETS: Final = (
    Target(
        "mqtt-relayed",
        lambda data: _relayed(RelayedSession(), data),
        (
            "gateway.net.forwarding.partial_unit:PartialUnit.keep",
            "gateway.net.forwarding.partial_unit:PartialUnit.piece",
            "gateway_mqtt.resuming.packet_stream:PacketStream.cut",
            "gateway_mqtt.resuming.relayed_session:RelayedSession.receive_from_client",
            "gateway_mqtt.resuming.relayed_session:RelayedSession.receive_from_leader",
            "gateway_mqtt.resuming.filters:RelayedFilters.subscribe",
            "gateway_mqtt.resuming.filters:RelayedFilters.subscribed",
            "gateway_mqtt.resuming.filters:RelayedFilters.unsubscribe",
            "gateway_mqtt.resuming.filters:RelayedFilters.unsubscribed",
            "gateway_mqtt.resuming.topic_aliases:RelayedAliases.with_topic",
        ),
        _mqtt_seeds,
        _MQTT_TOKENS,
    ),
    Target(
        "stomp-relayed",
        lambda data: _relayed(RelayedStompConnection(), data),
        (
            "gateway_stomp.resuming.frame_head:with_header",
            "gateway_stomp.resuming.frame_head:without_headers",
            "gateway.net.forwarding.partial_unit:PartialUnit.keep_until",
            "gateway_stomp.resuming.frame_stream:FrameStream.cut",
            "gateway_stomp.resuming.relayed_connection:RelayedStompConnection.receive_from_client",
            "gateway_stomp.resuming.relayed_connection:RelayedStompConnection.receive_from_leader",
        ),
        _stomp_seeds,
        _STOMP_TOKENS,
    ),
    Target(
        "amqp-relayed",
        lambda data: _relayed(RelayedConnection(), data),
        (
            "gateway_amqp.resuming.relayed_connection:RelayedConnection.receive_from_client",
            "gateway_amqp.resuming.relayed_connection:RelayedConnection.receive_from_leader",
            "gateway_amqp.resuming.relayed_channel:RelayedChannel.from_client",
            "gateway_amqp.resuming.relayed_channel:RelayedChannel.from_leader",
            "gateway_amqp.resuming.channel_settings:ChannelSettings.cancelled",
            "gateway_amqp.resuming.delivery_tags:DeliveryTags.for_client",
            "gateway_amqp.resuming.delivery_tags:DeliveryTags.for_leader",
            "gateway_amqp.resuming.held_frames:HeldFrames.note",
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
