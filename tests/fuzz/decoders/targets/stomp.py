"""Decoders of STOMP 1.0, 1.1 and 1.2: frames, escapes, heart-beats, destinations, stored headers."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Final

from gateway.kernel.errors import PreconditionFailed, ProtocolViolation
from gateway.kernel.messages.message import HeaderEdit
from gateway_stomp import destinations, not_ready
from gateway_stomp.decoder import FrameDecoder
from gateway_stomp.errors import StompError
from gateway_stomp.frames import encode
from gateway_stomp.header import STOMP, StompHeaderFormat, headers_in, written
from gateway_stomp.heartbeats import heartbeats
from gateway_stomp.versions import Version, highest_common
from tests.fuzz.decoders.corpus import TO_BROKER, frames_of, sessions_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_any_cut, require_same, text_of
from tests.fuzz.decoders.target import Target

TOKENS: Final = (
    b"CONNECT\n", b"STOMP\n", b"SEND\n", b"SUBSCRIBE\n", b"MESSAGE\n", b"ACK\n", b"\n\n", b"\r\n", b"\r\n\r\n", b"\0",
    b"content-length:", b"content-length:5\n", b"destination:/queue/q\n", b"\\n", b"\\c", b"\\\\", b"\\r", b"\\t",
    b"heart-beat:0,0", b"accept-version:1.0,1.1,1.2", b"receipt:1", b"transaction:t", b"persistent:true",
    b"priority:", b"expiration:", b"timestamp:", b"reply-to:", b"/exchange/", b"/topic/", b"/temp-queue/",
    b"/amq/queue/", b"/reply-queue/", b"%2F", b"amqp-message-id:", b"x-death", b" :", b": ",
)  # fmt: skip

#: Limits of frames, small so that short inputs exceed them, and the longest input.
_LIMITS: Final = {"limit": 512, "headers_limit": 256, "count_limit": 10, "line_limit": 128, "body_limit": 384}
#: An edit of a stored header.
_EDIT: Final = HeaderEdit({"x-death": [1]}, ("a",), drops_expiration=True)
_LONGEST: Final = 1024


def _frames_in(version: Version | None) -> Callable[[bytes], None]:
    """Return the check of frames in a version, ``None`` before one is negotiated."""

    def check(data: bytes) -> None:
        require_any_cut(data, lambda pieces: _decoded(version, pieces))
        frames = _decoded(version, (data,))[0]
        for verb, headers, body in frames:
            again = encode(verb, headers, version or Version.V10, body)
            if _is_exact(version, verb, headers):
                back = _decoded(version, (again,))[0]
                same = [pair for pair in headers if pair[0] != "content-length"]
                came = [(back_verb, [pair for pair in pairs if pair[0] != "content-length"], rest)
                        for back_verb, pairs, rest in back]  # fmt: skip
                if len(again) < 128:  # shorter than each limit, which an encoder does not know
                    require_same("a frame is encoded as it was decoded", came, [(verb, same, body)])
        answer = not_ready.refusal(data, "the node starts")
        require(answer is None or len(answer) < 256, "a refusal is short")

    return check


def _is_exact(version: Version | None, verb: str, headers: list[tuple[str, str]]) -> bool:
    """Whether a frame can be encoded exactly: CONNECT and 1.0 have no escapes, and content-length is written once."""
    is_plain = all("\r" not in name + value and "\n" not in name + value for name, value in headers)
    has_length = any(name == "content-length" for name, _ in headers)
    escapes = version in (Version.V11, Version.V12) and verb not in ("CONNECT", "STOMP")
    return verb != "" and "\r" not in verb and not has_length and is_plain and escapes


def _decoded(
    version: Version | None, pieces: Sequence[bytes]
) -> tuple[list[tuple[str, list[tuple[str, str]], bytes]], object]:
    """Return the frames in some pieces, and the refusal that ended them."""
    decoder = FrameDecoder(**_LIMITS)
    decoder.version = version
    frames = []

    def feed(piece: bytes) -> None:
        for head, body in decoder.feed(piece):
            frames.append((head.verb, list(head.headers.items()), body))

    for piece in pieces:
        refusal = attempt(StompError, feed, piece)
        if refused(refusal):
            return frames, refusal.kind
        require(decoder.kept <= _LIMITS["limit"] + len(piece) + 2, "kept bytes are bounded", decoder.kept)
    return frames, None


def _escapes(data: bytes) -> None:
    """A text is unescaped as it was escaped; heart-beats and versions are negotiated or refused."""
    text = text_of(data)
    for version in (Version.V11, Version.V12):
        require_same("a text is unescaped as it was escaped", version.unescape(version.escape(text)), text)
        plain = attempt(StompError, version.unescape, text)
        if not refused(plain):
            require_same("an escaped text comes back", version.unescape(version.escape(plain)), plain)
    require_same("1.0 has no escapes", Version.V10.unescape(text), text)
    beats = attempt(StompError, heartbeats, text)
    if not refused(beats):
        again = heartbeats(",".join(reversed(beats.written.split(","))))
        require_same("heart-beats are encoded as they were decoded", again, beats)
    attempt(StompError, highest_common, text)


def _destination(data: bytes) -> None:
    """A destination is parsed or refused."""
    text = text_of(data)
    found = attempt(StompError, destinations.parse, text, "amq.topic")
    if refused(found):
        return
    require_same("it keeps what was written", found.written, text)
    destinations.with_wildcards(found)
    destinations.shown(found.exchange, found.name, "amq.topic")


def _header(data: bytes) -> None:
    """A stored header is decoded, or refused by all readers; edits are decoded again."""
    form = StompHeaderFormat()
    refusals = (ProtocolViolation, PreconditionFailed)
    properties = attempt(refusals, form.properties, data)
    header = attempt(refusals, form.header, data)
    edited = attempt(refusals, form.edited, data, _EDIT)
    stamped = attempt(refusals, form.stamped, data, 1_700_000_000)
    headers = attempt(refusals, headers_in, data.partition(b"\0")[0])
    if not refused(headers):
        require_same("header lines are encoded as they were decoded", headers_in(written(headers)), headers)
        attempt(refusals, form.sent, headers)
    if refused(properties) or refused(header) or refused(edited) or refused(stamped):
        return
    again = form.properties(edited)
    require(again.headers["x-death"] == [1] and again.expiration is None, "a header is edited", again)
    require(form.properties(stamped).timestamp is not None, "a header is stamped")


def _frame_seeds() -> Iterable[bytes]:
    yield from frames_of("stomp")
    yield from (b"".join(session[:4])[:4096] for session in sessions_of("stomp"))
    yield b"CONNECT\nlogin:guest\npasscode:guest\naccept-version:1.0,1.1,1.2\nheart-beat:0,0\n\n\0"
    yield b"SEND\ndestination:/queue/q\ncontent-length:5\n\na\0b\0c\0\n"
    yield b"SEND\r\ndestination:/queue/q\r\nx\\cy:a\\nb\\\\c\\r\r\n\r\nbody\0\r\n"
    yield b"SEND\nfoo:1\nfoo:2\n\n\0\n\nSEND\nfoo:1\n\n\0"


def _header_seeds() -> Iterable[bytes]:
    yield b"priority:5\nexpiration:60000\npersistent:true\ntimestamp:1700000000\nfoo:a\\cb\nuser-id:guest\n"
    yield b"reply-to:/temp-queue/x\ncontent-type:text/plain\nx-death:1\n"
    header = STOMP.sent({"foo": "bar", "destination": "/queue/q", "n": "a\nb"})
    yield header.raw
    yield header.edited({"x-death": [{"count": 1}]}).raw
    for session in sessions_of("stomp"):
        for frame in session:
            if frame.startswith(b"SEND\n"):
                yield frame[5:].partition(b"\n\n")[0] + b"\n"


def _destination_seeds() -> Iterable[bytes]:
    kinds = ("/queue/", "/amq/queue/", "/reply-queue/", "/temp-queue/", "/topic/", "/exchange/")
    yield from (f"{kind}{name}".encode() for kind, name in product(kinds, ("q", "a/b", "a%2Fb", "a.*.>", "", "ü")))
    yield b"plain"
    for frame in frames_of("stomp", TO_BROKER):
        _, found, rest = frame.partition(b"\ndestination:")
        if found:
            yield rest.partition(b"\n")[0]


_OF_FRAMES: Final = ("gateway_stomp.decoder:FrameDecoder.start", "gateway_stomp.decoder:FrameDecoder.feed")

TARGETS: Final = (
    Target("stomp-frames-unnegotiated", _frames_in(None), (*_OF_FRAMES, "gateway_stomp.not_ready:refusal"),
           _frame_seeds, TOKENS, _LONGEST),
    Target("stomp-frames-1.0", _frames_in(Version.V10), _OF_FRAMES, _frame_seeds, TOKENS, _LONGEST),
    Target("stomp-frames-1.1", _frames_in(Version.V11), _OF_FRAMES, _frame_seeds, TOKENS, _LONGEST),
    Target("stomp-frames-1.2", _frames_in(Version.V12), _OF_FRAMES, _frame_seeds, TOKENS, _LONGEST),
    Target(
        "stomp-escapes",
        _escapes,
        (
            "gateway_stomp.versions:Version.unescape", "gateway_stomp.versions:highest_common",
            "gateway_stomp.heartbeats:heartbeats",
        ),
        lambda: (b"a\\cb", b"a\\nb\\\\", b"\\r", b"1000,2000", b" 5 , 0 ", b"1.0,1.1,1.2", b"a:b\r\n"),
        TOKENS,
    ),
    Target("stomp-destinations", _destination, ("gateway_stomp.destinations:parse",), _destination_seeds, TOKENS),
    Target(
        "stomp-stored-header",
        _header,
        (
            "gateway_stomp.header:StompHeaderFormat.header", "gateway_stomp.header:StompHeaderFormat.properties",
            "gateway_stomp.header:StompHeaderFormat.edited", "gateway_stomp.header:StompHeaderFormat.stamped",
            "gateway_stomp.header:headers_in",
        ),
        _header_seeds,
        TOKENS,
    ),
)  # fmt: skip
