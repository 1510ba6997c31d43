"""Decoders of the engine of several nodes: what NATS servers send, and what nodes have stored."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.cluster.batches import LogBatch, RecordPiece, decode_batch, encode_batch
from gateway.cluster.cells.handovers import Handover, decode_handover, encode_handover
from gateway.cluster.cells.shared_records import SharedRecord, decode_shared, encode_shared
from gateway.cluster.cells.user_figures import FiguresFrame, decode_figures, encode_figures
from gateway.cluster.cells.vhost_records import VhostPlace, VhostState, decode_place, encode_place
from gateway.cluster.errors import ClusterMismatch, LogDamaged, LogGap
from gateway.cluster.leadership import Lease, Member, Role
from gateway.cluster.leadership.lease import decode_lease, encode_lease
from gateway.cluster.leadership.maintenance import decode_instance, encode_instance
from gateway.cluster.leadership.member import decode_member, encode_member
from gateway.cluster.metadata import Revision
from gateway.cluster.queue_log import Epoch, QueueId
from gateway.cluster.replication.step_codec import StepEncoder, decode_step
from gateway.kernel.errors import ConfigurationError, StorageError
from gateway.kernel.journal.changes import (
    Appended,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    Sealed,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.journal.records.topology import VhostRecord
from gateway.kernel.journal.stored_changes import message_of
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.management.pipeline.vouched_range import (
    LogPlace,
    VouchedRange,
    decode_vouched,
    encode_offer,
    encode_vouched,
    parse_offer,
)
from gateway.node.cluster.cell_map import decode_question, encode_question
from gateway_jetstream.client.addresses import parse_address
from gateway_jetstream.client.conversation import NatsConversation
from gateway_jetstream.client.nkeys import parse_credentials, parse_seed
from gateway_jetstream.codec.decoder import NatsDecoder
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.codec.headers import decode_headers, encode_headers
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.api import decode_answer
from gateway_jetstream.jetstream.stream_message import decode_stored, parse_place
from gateway_jetstream.ports.admission import decode_monitoring, require_jetstream, require_version, text_field
from gateway_jetstream.ports.foundation import decode_founding
from gateway_jetstream.ports.key_text import decode_key, encode_key
from gateway_jetstream.ports.queue_logs import decode_node
from gateway_jetstream.ports.server_checks import decode_checked, encode_checked
from tests.fuzz.decoders.laws import attempt, refused, require, require_any_cut, require_same, text_of
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b"INFO {", b"MSG a 1 2\r\n", b"HMSG a 1 12 14\r\n", b"PING\r\n", b"PONG\r\n", b"+OK\r\n", b"-ERR 'x'\r\n",
    b"NATS/1.0\r\n", b"NATS/1.0 503\r\n\r\n", b"NATS/1.0 100 Idle Heartbeat\r\n", b"\r\n\r\n", b"Nats-Sequence: 7\r\n",
    b"$JS.ACK.S.C.1.5.2.1700000000000000000.0", b"_INBOX.a.1", b'"error":{"code":400,"err_code":10071}', b'"seq":5',
    b'"hdrs":"', b"=2F", b"nats://", b"tls://u:p@h:4222", b'"sync_always":true', b'"cluster_size":3', b'"shards":8',
)  # fmt: skip

#: Limits of frames, small so that short inputs exceed them.
_LIMITS: Final = {"line_limit": 128, "info_limit": 256, "payload_limit": 512}
_LONGEST: Final = 1024

_SEED: Final = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"


def _frames(data: bytes) -> None:
    """Frames are the same for any cut; what is kept is bounded."""
    require_any_cut(data, _decoded)


def _decoded(pieces: Sequence[bytes]) -> tuple[list[object], object]:
    decoder = NatsDecoder(**_LIMITS)
    frames: list[object] = []

    def feed(piece: bytes) -> None:
        frames.extend(decoder.feed(piece))

    for piece in pieces:
        refusal = attempt(NatsError, feed, piece)
        if refused(refusal):
            return frames, refusal
        require(decoder.kept <= _LIMITS["payload_limit"] + _LIMITS["info_limit"] + len(piece), "kept bytes are bounded")
    return frames, None


def _conversation(data: bytes) -> None:
    """A conversation takes anything, or refuses it."""

    def outcome(pieces: Sequence[bytes]) -> object:
        conversation = NatsConversation("fuzz", False, lambda info: {})
        happened: list[object] = []

        def receive(piece: bytes) -> None:
            happened.extend(repr(each) for each in conversation.receive(piece))

        for piece in pieces:
            refusal = attempt(NatsError, receive, piece)
            if refused(refusal):
                return happened, refusal.kind
        return happened, conversation.stage, conversation.outgoing()

    require_any_cut(data, outcome)


def _headers(data: bytes) -> None:
    """Fields are encoded as they were decoded."""
    headers = attempt(NatsError, decode_headers, data)
    if refused(headers):
        return
    block = attempt(NatsError, encode_headers, headers.fields)
    if not refused(block):
        require_same("headers are encoded as they were decoded", decode_headers(block).fields, headers.fields)


def _answers(data: bytes) -> None:
    """Answers of JetStream and monitoring endpoints, records of the cluster and of owners are decoded or refused."""
    answer = attempt(NatsError, decode_answer, Delivered("r", 1, "", b"", data), "server", "subject")
    if not refused(answer):
        attempt(NatsError, decode_stored, answer.get("message"))
        attempt(NatsError, decode_stored, answer)
    attempt(NatsError, parse_place, text_of(data))
    attempt(ClusterMismatch, decode_founding, data, "test")
    require(isinstance(decode_node(data), str), "the node of a claim is a text")
    monitoring = attempt(ClusterMismatch, decode_monitoring, data, "url")
    if not refused(monitoring):
        attempt(ClusterMismatch, require_jetstream, monitoring, "url")
        attempt(ClusterMismatch, require_version, text_field(monitoring, "version"), "url")
    attempt(ClusterMismatch, require_version, text_of(data), "url")


def _keys(data: bytes) -> None:
    """Keys are encoded as they were decoded, and decoded as they were encoded."""
    key = tuple(text_of(data).split("\n"))
    require_same("a key comes back", decode_key(encode_key(key)), key)
    found = attempt(NatsError, decode_key, text_of(data))
    require(refused(found) or encode_key(found) == text_of(data), "a key has one text", found)


def _batch(data: bytes) -> None:
    """A batch is encoded as it was decoded; damage is found."""
    batch = attempt(LogGap, decode_batch, data)
    if not refused(batch):
        require_same("a batch is encoded as it was decoded", encode_batch(batch), data)
    made = encode_batch(LogBatch(QueueId(1), Epoch(2), 3, 4, 5, [RecordPiece(data), RecordPiece(data[:3], True)]))
    flipped = bytearray(made)
    flipped[len(data) % len(made)] ^= 1 << (len(data) % 8)
    require(refused(attempt(LogGap, decode_batch, bytes(flipped))), "a flipped bit is found")


def _step(data: bytes) -> None:
    """A record of the store is refused, or decoded to changes that are the same when they are written again."""
    changes = attempt((LogDamaged, StorageError), decode_step, data)
    if not refused(changes):
        written = StepEncoder().encode(changes)
        require_same("changes are the same", StepEncoder().encode(decode_step(written)), written)


def _step_seeds() -> Iterable[bytes]:
    message = message_of(StoredMessage("amq.topic", "a.b", "amqp", b"\x00\x00", b"body"))
    message.id = 7
    segment = StreamSegment(3, 0, 10, 100, 5, 6, True, b"bloom")
    encode = StepEncoder().encode
    yield encode([Stored(message), Enqueued(1, 9, 7, 1_700_000_000_000), Dequeued(8), Discarded(6)])
    yield encode([Put(VhostRecord("v", "", [], "", False, {}, {})), Removed("queue", ("/", "q"))])
    yield encode([Appended(3, 0, 5, b"f", message), Sealed(segment), Truncated(3, 10)])


def _nodes(data: bytes) -> None:
    """The record of a node and the lease are read or left out; what is read is the same when it is written again."""
    member = decode_member(data)
    require(member is None or decode_member(encode_member(member)) == member, "a member is the same", member)
    lease = decode_lease(data)
    require(lease is None or decode_lease(encode_lease(lease)) == lease, "a lease is the same", lease)
    name = decode_instance(data)
    place, shared = decode_place(data), decode_shared(data)
    handover = decode_handover(data)
    require(handover is None or decode_handover(encode_handover(handover)) == handover, "a handover is the same")
    figures = decode_figures(data)
    require(figures is None or decode_figures(encode_figures(figures)) == figures, "figures are the same", figures)
    question = decode_question(data)
    require(question is None or decode_question(encode_question(*question)) == question, "a question is the same")
    require(place is None or decode_place(encode_place(place)) == place, "a place is the same", place)
    require(shared is None or decode_shared(encode_shared(shared)) == shared, "a shared record is the same", shared)
    checked = decode_checked(data)
    require(decode_checked(encode_checked(checked)) == checked, "the servers are the same", checked)
    require(name is None or decode_instance(encode_instance(name)) == name, "a name is the same", name)


def _ranges(data: bytes) -> None:
    """A range is decoded or refused, and the same when it is encoded again; offers are bounded."""
    vouched = attempt(ValueError, decode_vouched, data)
    if not refused(vouched):
        require_same("a range is the same", decode_vouched(encode_vouched(vouched)), vouched)
    offered = parse_offer(text_of(data))
    require(len(offered) <= data.count(b",") + 1, "an offer has no more copies than words", offered)
    epochs = {place.cell: place.epoch for place in offered}
    require(parse_offer(encode_offer(epochs)) == {LogPlace(*each) for each in epochs.items()}, "an offer is the same")


def _settings(data: bytes) -> None:
    """Addresses, seeds and credentials are parsed or refused; no refusal repeats a secret."""
    text = text_of(data)
    address = attempt(ConfigurationError, parse_address, text)
    if not refused(address):
        require(not address.password or str(address) == str(parse_address(str(address))), "an address has no secret")
    attempt(ConfigurationError, parse_seed, text)
    attempt(ConfigurationError, parse_credentials, text)


def _frame_seeds() -> Iterable[bytes]:
    info = json.dumps({"server_id": "N", "version": "2.15.1", "max_payload": 1048576, "headers": True}).encode()
    opening = b"INFO " + info + b"\r\nPONG\r\n"
    yield opening + b"PING\r\nMSG a.b 1 5\r\nhello\r\nMSG a.b 1 r.1 0\r\n\r\n"
    yield opening + b"HMSG a 2 r 12 17\r\nNATS/1.0\r\n\r\nhello\r\n+OK\r\n-ERR 'Unknown Protocol Operation'\r\n"
    yield b'INFO {"tls_required":true}\r\n'
    yield b'INFO {"tls_required":true}\r\nPONG\r\nMSG a 1 0\r\n\r\n'
    yield b"INFO {}\r\n-ERR 'Authorization Violation'\r\n"
    yield opening + b'INFO {"ldm":true}\r\n'


def _answer_seeds() -> Iterable[bytes]:
    yield b'{"stream":"S","seq":5,"duplicate":true}'
    yield b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 5"}}'
    yield b'{"message":{"subject":"a","seq":5,"hdrs":"TkFUUy8xLjANCg0K","data":"eDQ="}}'
    yield b"$JS.ACK.S.C.1.5.2.1700000000000000000.3"
    yield b"$JS.ACK._.hash.S.C.1.5.2.1700000000000000000.3.token"
    yield b'{"version":1,"name":"test","shards":8}'
    yield b'{"config":{"sync_always":true},"meta_cluster":{"cluster_size":3},"version":"2.15.1"}'
    yield b'{"node":"a"}'
    yield b"2.12.8-RC.1"


TARGETS: Final = (
    Target("cluster-nats-frames", _frames, ("gateway_jetstream.codec.decoder:NatsDecoder.feed",), _frame_seeds, TOKENS,
           _LONGEST),
    Target("cluster-nats-conversation", _conversation,
           ("gateway_jetstream.client.conversation:NatsConversation.receive",), _frame_seeds, TOKENS, _LONGEST),
    Target(
        "cluster-nats-headers",
        _headers,
        ("gateway_jetstream.codec.headers:decode_headers",),
        lambda: (
            b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\na:b\r\n\r\n",
            b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 5\r\n\r\n",
        ),
        TOKENS,
    ),
    Target(
        "cluster-answers",
        _answers,
        (
            "gateway_jetstream.jetstream.api:decode_answer", "gateway_jetstream.jetstream.stream_message:parse_place",
            "gateway_jetstream.jetstream.stream_message:decode_stored",
            "gateway_jetstream.ports.admission:decode_monitoring", "gateway_jetstream.ports.foundation:decode_founding",
            "gateway_jetstream.ports.queue_logs:decode_node",
        ),
        _answer_seeds,
        TOKENS,
    ),
    Target("cluster-keys", _keys, ("gateway_jetstream.ports.key_text:decode_key",),
           lambda: (b"queue.=2F.orders", b"=", b"a.=C3=A4", b"\n/\na.b"), TOKENS),
    Target(
        "cluster-batches",
        _batch,
        ("gateway.cluster.batches:decode_batch",),
        lambda: (
            encode_batch(LogBatch(QueueId(7), Epoch(9), 1, 1, 1, [RecordPiece(b"hello"), RecordPiece(b"part", True)])),
            encode_batch(LogBatch(QueueId(7), Epoch(9), 2, 2, 1, [RecordPiece(b"rest")], continues=True)),
        ),
        TOKENS,
    ),
    Target(
        "cluster-steps",
        _step,
        ("gateway.cluster.replication.step_codec:decode_step",),
        _step_seeds,
        (b"S", b"E", b"D", b"X", b"P", b"R", b"M", b"G", b"T"),
    ),
    Target(
        "cluster-nodes",
        _nodes,
        (
            "gateway.cluster.leadership.member:decode_member", "gateway.cluster.leadership.member:decode_address",
            "gateway.cluster.leadership.lease:decode_lease",
            "gateway_jetstream.ports.server_checks:decode_checked",
            "gateway.cluster.leadership.maintenance:decode_instance",
            "gateway.node.cluster.cell_map:decode_question", "gateway.cluster.cells.handovers:decode_handover",
            "gateway.cluster.cells.user_figures:decode_figures",
            "gateway.cluster.cells.vhost_records:decode_place", "gateway.cluster.cells.shared_records:decode_shared",
        ),
        lambda: (
            encode_member(Member("a", "i1", ("h", 1), {"amqp": ("h", 5672)}, "1.0", 7, Role.LEADER, False)),
            encode_lease(Lease("a", "i1", Epoch(9), ("::1", 25672), True)),
            encode_instance("i1"),
            encode_question("vhosts", Revision(7)),
            encode_handover(Handover(Epoch(3), "b")),
            encode_figures(FiguresFrame(2, Epoch(3), 1, 0, 1, {"anna": (1, 2, 3, 4, 5)})),
            encode_place(VhostPlace(2, VhostState.DELETING)),
            encode_shared(SharedRecord(Epoch(9), b"entity")),
            encode_checked({"http://10.0.0.1:8222": "n1"}),
        ),
        TOKENS,
    ),
    Target(
        "cluster-ranges",
        _ranges,
        (
            "gateway.management.pipeline.vouched_range:decode_vouched",
            "gateway.management.pipeline.vouched_range:parse_offer",
        ),
        lambda: (encode_vouched(VouchedRange(LogPlace(1, 7), "/", "orders", 12, 0, 500)), b"1:7,2:9", b"1:,:7"),
        (b"[1,7]", b'"first":', b'"place":', b"1:7", b","),
    ),
    Target(
        "cluster-settings",
        _settings,
        (
            "gateway_jetstream.client.addresses:parse_address", "gateway_jetstream.client.nkeys:parse_seed",
            "gateway_jetstream.client.nkeys:parse_credentials",
        ),
        lambda: (
            b"nats://u:p@127.0.0.1:4222", b"tls://token@[::1]:4222/", b"host", _SEED.encode(),
            b"-----BEGIN NATS USER JWT-----\neyJ0\n------END NATS USER JWT------\n\n"
            b"-----BEGIN USER NKEY SEED-----\n" + _SEED.encode() + b"\n------END USER NKEY SEED------\n",
        ),
        TOKENS,
    ),
)  # fmt: skip
