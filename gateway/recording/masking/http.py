"""HTTP: what a client sends. Bodies, credentials, cookies and unknown headers and parameters are hidden.

Of short JSON, the structure is shown, and the values of the keys that describe queues, exchanges and bindings.
"""

from base64 import b64decode, b64encode
from collections.abc import Generator
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from gateway.recording.masking.json_values import LONGEST_JSON, masked_json
from gateway.recording.parsing import (
    HIDDEN,
    Emit,
    Grammar,
    Hold,
    HoldUntil,
    ParsingStep,
    ReadUntil,
    Skip,
    SkipUntil,
    Unreadable,
)

#: Headers whose values are shown.
_SHOWN_HEADERS: Final = frozenset(
    b"accept accept-encoding accept-language access-control-request-headers access-control-request-method "
    b"cache-control connection content-length content-type expect host if-match if-modified-since if-none-match origin "
    b"range sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version transfer-encoding "
    b"upgrade user-agent".split()
)

#: Parameters of requests whose values are shown.
_SHOWN_PARAMETERS: Final = frozenset(
    b"columns disable_stats enable_queue_totals if-empty if-unused lengths_age lengths_incr limit name node_stats_age "
    b"node_stats_incr data_rates_age data_rates_incr msg_rates_age msg_rates_incr page page_size pagination sort "
    b"sort_reverse tail use_regex vhost".split()
)

#: The segment of a path that a password follows.
_BEFORE_PASSWORD: Final = b"hash_password"

_LONGEST_LINE: Final = 64 * 1024
_LONGEST_NAME: Final = 256
_LONGEST_CREDENTIALS: Final = 16 * 1024


def client_grammar() -> Grammar:
    """Return the grammar of a client's requests."""
    while True:
        yield from _request_line()
        length, is_chunked = yield from _headers()
        if is_chunked:
            yield from _chunks()
        elif length <= LONGEST_JSON:
            yield Emit(masked_json((yield Hold(length))))
        else:
            yield Skip(length, hides=True)


def head_grammar() -> Grammar:
    """Pass the head of one request, as of a WebSocket."""
    yield from _request_line()
    yield from _headers()


def _request_line() -> Grammar:
    method = b"\r\n"
    while not method.strip():
        method = yield ReadUntil(b" \n", _LONGEST_NAME)
        if method.strip() and not (method.endswith(b" ") and method[:-1].isalpha()):
            raise Unreadable
    stop = yield from _path()
    while stop not in (b" ", b"\n"):
        name = yield ReadUntil(b"=& \n", _LONGEST_LINE)
        stop = name[-1:]
        if stop == b"=":
            stop = yield SkipUntil(b"& \n", hides=name[:-1] not in _SHOWN_PARAMETERS)
    if stop == b" ":
        yield SkipUntil(b"\n")


def _path() -> Generator[ParsingStep, Any, bytes]:
    """Pass a path; return what comes after it: ``?``, a space or the end of the line."""
    segment = b"/"
    while segment.endswith(b"/"):
        is_secret = unquote_to_bytes(segment[:-1]) == _BEFORE_PASSWORD
        segment = yield (SkipUntil(b"? \n", hides=True) if is_secret else ReadUntil(b"/? \n", _LONGEST_LINE))
    return segment[-1:]


def _headers() -> Generator[ParsingStep, Any, tuple[int, bool]]:
    """Pass headers and the empty line; return the length of the body, and whether it is sent in chunks."""
    length, is_chunked = 0, False
    while True:
        line = yield HoldUntil(b":\n", _LONGEST_NAME)
        if line is None or line in (b"\n", b"\r\n"):
            if line is None:
                raise Unreadable
            yield Emit(line)
            return length, is_chunked
        if line.endswith(b"\n") or line[:1].isspace():
            raise Unreadable
        yield Emit(line)
        name = line[:-1].strip().lower()
        if name == b"content-length":
            length = _number((yield ReadUntil(b"\n", _LONGEST_NAME)), 10)
        elif name == b"transfer-encoding":
            is_chunked = b"chunked" in (yield ReadUntil(b"\n", _LONGEST_NAME)).lower()
        elif name == b"authorization":
            value = yield HoldUntil(b"\n", _LONGEST_CREDENTIALS)
            if value is not None:
                yield Emit(masked_authorization(value))
        else:
            yield SkipUntil(b"\n", hides=name not in _SHOWN_HEADERS)


def _chunks() -> Grammar:
    size = -1
    while size:
        size = _number((yield ReadUntil(b"\n", _LONGEST_NAME)).partition(b";")[0], 16)
        if size:
            yield Skip(size, hides=True)
            yield SkipUntil(b"\n", hides=True)
    yield from _headers()  # trailers


def masked_authorization(value: bytes) -> bytes:
    """Hide the value of an ``Authorization`` header but for the user of the scheme Basic."""
    content = value.rstrip(b"\r\n")
    end = value[len(content) :]
    scheme, space, credentials = content.lstrip(b" ").partition(b" ")
    before = content[: len(content) - len(credentials)]
    if not space or scheme.lower() != b"basic":
        return HIDDEN * len(content) + end
    try:
        user, colon, password = b64decode(credentials, validate=True).partition(b":")
    except ValueError:
        colon = b""
    if not colon:
        return before + HIDDEN * len(credentials) + end
    shown = b64encode(user + colon + HIDDEN * len(password))
    return before + (shown if len(shown) == len(credentials) else HIDDEN * len(credentials)) + end


def _number(text: bytes, base: int) -> int:
    try:
        return abs(int(text.strip(), base))
    except ValueError:
        raise Unreadable from None
