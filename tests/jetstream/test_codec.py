"""Frames, headers and keys of NATS: any cut of the bytes, limits, and what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_jetstream.codec.decoder import NatsDecoder
from gateway_jetstream.codec.encoder import checked_subject, connect, publish, subscribe, unsubscribe
from gateway_jetstream.codec.frames import OKAY, PING, PONG, Delivered, ErrorText, Frame, Info
from gateway_jetstream.codec.headers import NatsHeaders, decode_headers, encode_headers
from gateway_jetstream.errors import NatsError, NatsProtocolError
from gateway_jetstream.jetstream.stream_message import DeliveryPlace, parse_place
from gateway_jetstream.ports.key_text import decode_key, encode_key
from tests.effort import examples

_TOKENS = st.text("abcXYZ019_$-", min_size=1, max_size=8)
_SUBJECTS = st.lists(_TOKENS, min_size=1, max_size=3).map(".".join)
_FIELDS = st.dictionaries(st.text("abcABC-", min_size=1, max_size=8), st.text("abc 1:/", max_size=12).map(str.strip))


@st.composite
def frames(draw: st.DrawFn) -> tuple[bytes, Frame]:
    """Return a frame, and its bytes as a server writes them."""
    kind = draw(st.sampled_from(["MSG", "HMSG", "PING", "PONG", "+OK", "-ERR", "INFO"]))
    if kind in ("MSG", "HMSG"):
        subject, sid, reply = draw(_SUBJECTS), draw(st.integers(0, 10**9)), draw(st.just("") | _SUBJECTS)
        payload = draw(st.binary(max_size=64))
        header = encode_headers(draw(_FIELDS)) if kind == "HMSG" else b""
        sizes = f"{len(header)} {len(header) + len(payload)}" if header else f"{len(payload)}"
        line = " ".join(part for part in (kind, subject, str(sid), reply, sizes) if part)
        return line.encode() + b"\r\n" + header + payload + b"\r\n", Delivered(subject, sid, reply, header, payload)
    simple: dict[str, tuple[bytes, Frame]] = {
        "PING": (b"PING\r\n", PING),
        "PONG": (b"PONG\r\n", PONG),
        "+OK": (b"+OK\r\n", OKAY),
        "-ERR": (b"-ERR 'Stale Connection'\r\n", ErrorText("Stale Connection")),
        "INFO": (b'INFO {"version":"2.15.1"} \r\n', Info({"version": "2.15.1"})),
    }
    return simple[kind]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(frames(), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_how_the_bytes_are_cut_never_matters(sent: list[tuple[bytes, Frame]], cuts: list[int]) -> None:
    wire = b"".join(data for data, _ in sent)
    decoder, found, at = NatsDecoder(), list[Frame](), 0
    for cut in [*sorted(cut for cut in cuts if cut < len(wire)), len(wire)]:
        found += decoder.feed(wire[at:cut])
        at = cut
    assert repr(found) == repr([frame for _, frame in sent])
    assert decoder.kept == 0


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        pytest.param(b"HELLO\r\n", "unknown line", id="an unknown verb"),
        pytest.param(b"x" * 5000, "more than 4096 bytes", id="a line without end"),
        pytest.param(b"INFO {" + b" " * 70_000, "more than 65536 bytes", id="an INFO without end"),
        pytest.param(b"INFO []\r\n", "not an object", id="an INFO that is a list"),
        pytest.param(b"INFO {\r\n", "not JSON", id="an INFO that is cut"),
        pytest.param(b"MSG a 1\r\n", "MSG with 2 parts", id="a message without its size"),
        pytest.param(b"MSG a x 1\r\n", "instead of a number", id="a message without its subscription"),
        pytest.param(b"MSG a 1 -1\r\n", "instead of a number", id="a negative size"),
        pytest.param(b"MSG a 1 99999999999\r\n", "at most 67108864", id="a size beyond the limit"),
        pytest.param(b"MSG a 1 1\r\nabc", "longer than it says", id="a message longer than its size"),
        pytest.param(b"HMSG a 1 5 3\r\n", "more headers than bytes", id="headers longer than the message"),
    ],
)
def test_what_is_no_frame_is_refused(wire: bytes, text: str) -> None:
    with pytest.raises(NatsProtocolError, match=text):
        list(NatsDecoder().feed(wire))


def test_messages_are_encoded() -> None:
    assert publish("a.b", "", b"", b"hello") == b"PUB a.b 5\r\nhello\r\n"
    assert publish("a", "r.1", b"", b"") == b"PUB a r.1 0\r\n\r\n"
    header = encode_headers({"a": "b"})
    assert header == b"NATS/1.0\r\na: b\r\n\r\n"
    assert publish("a", "r", header, b"xy") == b"HPUB a r 18 20\r\nNATS/1.0\r\na: b\r\n\r\nxy\r\n"
    assert subscribe("a.*", "", 3) == b"SUB a.* 3\r\n"
    assert subscribe("a.>", "g", 3) == b"SUB a.> g 3\r\n"
    assert unsubscribe(3) == b"UNSUB 3\r\n"
    assert connect({"verbose": False}) == b'CONNECT {"verbose":false}\r\n'


@pytest.mark.parametrize("subject", ["", ".", "a.", ".a", "a b", "a\r\nPUB b 0", "a\tb", "a\x00b"])
def test_what_is_no_subject_is_not_sent(subject: str) -> None:
    with pytest.raises(NatsError, match="no subject"):
        checked_subject(subject)


@settings(max_examples=examples(100), deadline=None)
@given(_FIELDS)
def test_headers_come_back(fields: dict[str, str]) -> None:
    assert decode_headers(encode_headers(fields)) == NatsHeaders(fields=fields)


@pytest.mark.parametrize("fields", [{"a\r\nb": "c"}, {"a": "b\r\nc: d"}, {"a": "b\n"}, {"": "a"}, {"a:b": "c"}])
def test_headers_with_line_ends_are_not_sent(fields: dict[str, str]) -> None:
    with pytest.raises(NatsError, match="cannot be sent"):
        encode_headers(fields)


def test_a_status_is_read() -> None:
    assert decode_headers(b"NATS/1.0 503\r\n\r\n") == NatsHeaders(503)
    heartbeat = decode_headers(b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 5\r\n\r\n")
    assert heartbeat == NatsHeaders(100, "Idle Heartbeat", {"Nats-Last-Consumer": "5"})


@pytest.mark.parametrize(
    "block", [b"HTTP/1.1 200\r\n\r\n", b"NATS/1.0", b"NATS/1.0 x\r\n\r\n", b"NATS/1.0\r\nab\r\n\r\n"]
)
def test_what_is_no_block_of_headers_is_refused(block: bytes) -> None:
    with pytest.raises(NatsProtocolError):
        decode_headers(block)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=4).map(tuple))
def test_keys_are_subjects_and_come_back(key: tuple[str, ...]) -> None:
    assert decode_key(checked_subject(encode_key(key))) == key


@pytest.mark.parametrize("text", ["", "a..b", "=2f", "=61", "=F", "a=", "=C3", "a b", "\u00e4"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(NatsProtocolError):
        decode_key(text)


def test_the_place_of_a_delivery_is_read_in_both_forms() -> None:
    place = DeliveryPlace(5, 2, 3)
    assert parse_place("$JS.ACK.S.C.1.5.2.1700000000000000000.3") == place
    assert parse_place("$JS.ACK._.hash.S.C.1.5.2.1700000000000000000.3") == place
    assert parse_place("$JS.ACK._.hash.S.C.1.5.2.1700000000000000000.3.token") == place
    for reply in ("", "$JS.ACK.S.C.1.5", "$JS.ACK.S.C.1.x.2.1.3", "_INBOX.a.b.c.d.e.f.g.h"):
        with pytest.raises(NatsProtocolError):
            parse_place(reply)
