"""Encodes what a client sends to a NATS server."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from gateway_jetstream.errors import NatsError

PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"

#: A subject: tokens without white space and control characters, separated by dots. Wildcards are tokens of their own.
_SUBJECT: Final = re.compile(r"[^\s.\x00-\x20\x7f]+(?:\.[^\s.\x00-\x20\x7f]+)*")


def connect(options: Mapping[str, Any]) -> bytes:  # Any: values of JSON
    """Return CONNECT with its options."""
    return b"CONNECT " + json.dumps(options, separators=(",", ":")).encode() + b"\r\n"


def publish(subject: str, reply: str, header: bytes, payload: bytes) -> bytes:
    """Return PUB, or HPUB if there are headers. The subjects were checked by ``checked_subject``."""
    to = f"{subject} {reply}" if reply else subject
    if header:
        return b"".join(
            (f"HPUB {to} {len(header)} {len(header) + len(payload)}\r\n".encode(), header, payload, b"\r\n")
        )
    return b"".join((f"PUB {to} {len(payload)}\r\n".encode(), payload, b"\r\n"))


def subscribe(subject: str, queue_group: str, sid: int) -> bytes:
    """Return SUB."""
    group = f" {queue_group}" if queue_group else ""
    return f"SUB {subject}{group} {sid}\r\n".encode()


def unsubscribe(sid: int) -> bytes:
    """Return UNSUB."""
    return f"UNSUB {sid}\r\n".encode()


def checked_subject(subject: str) -> str:
    """Return a subject. :raises NatsError: if it cannot be sent, for example because of a line end in it."""
    if _SUBJECT.fullmatch(subject) is None:
        raise NatsError("this is no subject", subject=repr(subject))
    return subject
