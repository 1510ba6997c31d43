"""STOMP: what a client sends. Passcodes are hidden, and bodies unless they are kept."""

from collections.abc import Collection, Generator
from typing import Any, Final

from gateway.recording.parsing import Grammar, ParsingStep, Read, ReadUntil, Skip, SkipUntil, Unreadable

_VERBS: Final = tuple(
    b"CONNECT STOMP SEND SUBSCRIBE UNSUBSCRIBE BEGIN COMMIT ABORT ACK NACK DISCONNECT".split()  # STOMP 1.2
)
_LOGINS: Final = (b"CONNECT", b"STOMP")

#: The headers of a login that are shown, the passcode without its value; others are hidden, with their names.
_SHOWN_AT_LOGIN: Final = (
    b"accept-version",
    b"client-id",
    b"content-length",
    b"heart-beat",
    b"host",
    b"login",
    b"passcode",
    b"receipt",
)

#: Parts of names of headers that are hidden in other frames.
_SECRET: Final = (b"passcode", b"password", b"secret", b"token", b"authorization")

_BETWEEN: Final = b"\n\r\0"
_LONGEST_NAME: Final = 64 * 1024
_LONGEST_LENGTH: Final = 64


def client_grammar(*, hides_bodies: bool) -> Grammar:
    """Return the grammar of a client's bytes."""
    while True:
        first = yield Read(1)
        if first in (b"\n", b"\r", b"\0"):
            continue
        verb, _ = yield from _known(_VERBS, first, b"\n")
        length = yield from _headers(is_login=verb in _LOGINS)
        if length is None:
            yield SkipUntil(b"\0", hides=hides_bodies)
        else:
            yield Skip(length, hides=hides_bodies)
            if (yield Read(1)) != b"\0":
                return


def _headers(*, is_login: bool) -> Generator[ParsingStep, Any, int | None]:
    """Pass the headers of a frame and the empty line; return the length of its body, ``None`` if it is not known."""
    length: int | None = None
    while True:
        name = yield from (_login_header() if is_login else _header())
        if name is None:
            return length
        if name == b"content-length":
            value = yield ReadUntil(b"\n", _LONGEST_LENGTH)
            if length is None:  # the first of several counts
                length = _number(value)
        else:
            yield SkipUntil(b"\n", hides=name == b"" or any(part in name.lower() for part in _SECRET))


def _header() -> Generator[ParsingStep, Any, bytes | None]:
    """Show the name of a header; ``None`` is the empty line."""
    name = yield ReadUntil(b":\n", _LONGEST_NAME)
    if name in (b"\n", b"\r\n"):
        return None
    if not name.endswith(b":"):
        raise Unreadable
    result: bytes = name[:-1]
    return result


def _login_header() -> Generator[ParsingStep, Any, bytes | None]:
    """Show the name of a header that is shown as a whole; any other is hidden, and empty here."""
    name, stop = yield from _known((b"", *_SHOWN_AT_LOGIN), b"", b":\n")
    if stop == b"\n" and not name:
        return None
    if stop == b"\n":
        raise Unreadable
    return name


def _known(names: Collection[bytes], seen: bytes, stops: bytes) -> Generator[ParsingStep, Any, tuple[bytes, bytes]]:
    """Show bytes while a name begins with them; return the name and the stop after it.

    A header whose name is not known is hidden from there on, and its name is empty. :raises Unreadable: for a verb.
    """
    is_verb = bool(seen)
    while any(name.startswith(seen) for name in names):
        byte = yield Read(1)
        if byte == b"\r" and b"\n" in stops:
            byte = yield Read(1)
            if byte != b"\n":
                raise Unreadable
        if byte in (bytes((stop,)) for stop in stops):
            if seen in names:
                return seen, byte
            break
        seen += byte
    else:
        byte = b""
    if is_verb:
        raise Unreadable
    if not byte:
        byte = yield SkipUntil(b":\n", hides=True)
    if byte == b"\n":
        raise Unreadable
    return b"", b":"


def _number(value: bytes) -> int:
    digits = value.strip(b" \r\n")
    if not digits.isdigit():
        raise Unreadable
    return int(digits)
