"""Decoders of recordings: the masks of secrets, the outlines of answers, and the file."""

import io
from collections.abc import Iterable, Sequence
from typing import Final

from gateway.kernel.errors import ConfigurationError
from gateway.recording.lines import event_line, head_line, read_recording
from gateway.recording.masking.amqp import masked_amqplain, masked_plain
from gateway.recording.masking.http import masked_authorization
from gateway.recording.masking.json_values import masked_json
from gateway.recording.masking.protocols import masking_parser
from gateway.recording.outlines.outline import AnswerOutline
from tests.fuzz.decoders.corpus import frames_of, sessions_of
from tests.fuzz.decoders.laws import attempt, refused, require, require_any_cut
from tests.fuzz.decoders.target import LONGEST_INPUT, Target

_LISTENERS: Final = ("amqp", "mqtt", "stomp", "management", "web_mqtt", "web_stomp")


def _masking(data: bytes) -> None:
    """Bytes of clients are masked to as many, the same ones however they are cut."""
    for listener in _LISTENERS:

        def outcome(pieces: Sequence[bytes], listener: str = listener) -> bytes:
            parser = masking_parser(listener, hides_bodies=True)
            return b"".join(map(parser.feed, pieces)) + parser.end()

        require_any_cut(data, outcome)
        require(len(outcome([data])) == len(data), "a mask keeps the length", listener)
    for mask in (masked_plain, masked_amqplain, masked_authorization, masked_json):
        require(len(mask(data)) == len(data), "a mask keeps the length", mask)


def _outlines(data: bytes) -> None:
    """Any answers have an outline, the same one however they are cut."""
    for listener in _LISTENERS:

        def outcome(pieces: Sequence[bytes], listener: str = listener) -> object:
            outline = AnswerOutline(listener)
            for piece in pieces:
                outline.feed(piece)
            return outline.take()

        require_any_cut(data, outcome)


def _file(data: bytes) -> None:
    """A file is a recording, whose lines mean the same when they are written again, or it is refused."""
    head = head_line("1", "now", hides_bodies=True)
    events = attempt(ConfigurationError, lambda: list(read_recording(io.BytesIO(head + data))))
    attempt(ConfigurationError, lambda: list(read_recording(io.BytesIO(data))))
    if not refused(events):
        lines = list(map(event_line, events))  # times are rounded
        again = list(read_recording(io.BytesIO(head + b"".join(lines))))
        require(list(map(event_line, again)) == lines, "an event is written as it was read", events)


def _client_seeds() -> Iterable[bytes]:
    for protocol in ("amqp", "mqtt", "stomp", "http", "websocket"):
        for session in sessions_of(protocol):
            yield b"".join(session)[:LONGEST_INPUT]
    yield b"\0user\0password"
    yield b"\5LOGINS\0\0\0\1a\x08PASSWORDS\0\0\0\1b"
    yield b" Basic dXNlcjpwYXNzd29yZA==\r\n"
    yield b'{"type": "quorum", "secret": [1, "a"]}'


def _answer_seeds() -> Iterable[bytes]:
    for protocol in ("amqp", "mqtt", "stomp", "http", "websocket"):
        yield from frames_of(protocol, "<")


def _file_seeds() -> Iterable[bytes]:
    yield b'{"at":0.1,"connection":1,"opened":"amqp","peer":"127.0.0.1:1"}\n'
    yield b'{"at":1,"connection":1,"received":"AAAA"}\n{"at":1,"connection":1,"sent":["a"],"names":["b"]}\n'
    yield b'{"at":1,"connection":1,"closed":"client"}\n{"at":1,"connection":1,"incomplete":"full"}\n'


TARGETS: Final = (
    Target(
        "recording-masking",
        _masking,
        (
            "gateway.recording.parsing:StreamParser.feed",
            "gateway.recording.masking.amqp:masked_plain",
            "gateway.recording.masking.amqp:masked_amqplain",
            "gateway.recording.masking.http:masked_authorization",
            "gateway.recording.masking.json_values:masked_json",
        ),
        _client_seeds,
    ),
    Target("recording-outlines", _outlines, ("gateway.recording.outlines.outline:AnswerOutline.feed",), _answer_seeds),
    Target("recording-file", _file, ("gateway.recording.lines:read_recording",), _file_seeds),
)
