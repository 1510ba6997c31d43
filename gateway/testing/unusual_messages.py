"""Messages that are valid and rare, for the checks of plugins."""

from collections.abc import Iterator, Mapping
from typing import Final

from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header

BODIES: Final = (b"", b"{}", b'{"id": 1}', b"[1, 2", b"\xff\xfe\0", "текст".encode(), b"x" * 100_000)

KEYS: Final = ("", "orders.new", "a.*.#", "ключ", "k" * 255)

HEADERS: Final[tuple[Mapping[str, Value], ...]] = (
    {},
    {"text": "a", "number": 1, "truth": True, "nothing": None},
    {"list": ["a", 1, {"deep": [None]}], "table": {"inner": {}}, "bytes": b"\xff"},
    {"ключ": "ü", "": "empty name"},
)


def unusual_messages() -> Iterator[Message]:
    """Yield messages with every combination of these keys, headers and bodies."""
    for key in KEYS:
        for headers in HEADERS:
            for body in BODIES:
                yield Message("source", key, native_header(Properties(headers=headers)), body)


def content_of(message: Message) -> tuple[object, ...]:
    """Return all parts of a message, to compare them later."""
    return message.exchange, message.routing_key, message.header, message.header.raw, message.body


def described(message: Message) -> str:
    """Return a message as a finding names it."""
    key, body = message.routing_key[:40], message.body[:40]
    return f"the message with key {key!r}, headers {dict(message.headers)!r} and body {body!r}"
