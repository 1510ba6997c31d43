"""AMQP 0-9-1: what a client sends. Responses of SASL and new secrets are hidden, and bodies unless they are kept."""

from collections.abc import Callable
from struct import unpack
from typing import Final

from gateway.recording.parsing import HIDDEN, Emit, Fields, Grammar, Read, Skip

_METHOD: Final = 1
_HEADER: Final = 2
_BODY: Final = 3
_HEARTBEAT: Final = 8
_FRAME_END: Final = b"\xce"

#: The longest response of PLAIN and AMQPLAIN of which the user is shown; of a longer one nothing is.
_LONGEST_RESPONSE: Final = 64 * 1024


def client_grammar(*, hides_bodies: bool) -> Grammar:
    """Return the grammar of a client's bytes."""
    for letter in b"AMQP":
        if (yield Read(1))[0] != letter:
            return
    yield Read(4)
    while True:
        head = yield Read(7)
        kind, _, size = unpack(">BHI", head)
        if kind == _METHOD and size >= 4:
            method = unpack(">HH", (yield Read(4)))
            yield from _SECRETS.get(method, _plain_method)(Fields(size - 4))
        elif kind in (_METHOD, _HEADER, _HEARTBEAT):
            yield Skip(size)
        elif kind == _BODY:
            yield Skip(size, hides=hides_bodies)
        else:
            return
        if (yield Read(1)) != _FRAME_END:
            return


def _plain_method(fields: Fields) -> Grammar:
    yield from fields.skip_rest()


def _start_ok(fields: Fields) -> Grammar:
    yield from fields.skip((yield from fields.number(4)))  # the client's properties
    mechanism = yield from fields.read((yield from fields.number(1)))
    size = yield from fields.number(4)
    mask = _MASK_BY_MECHANISM.get(mechanism)
    if mask is None or size > _LONGEST_RESPONSE:
        yield from fields.skip(size, hides=True)
    else:
        response = yield from fields.hold(size)
        yield Emit(mask(response))
    yield from fields.skip_rest()


def _secure_ok(fields: Fields) -> Grammar:
    yield from fields.skip((yield from fields.number(4)), hides=True)
    yield from fields.skip_rest()


_update_secret: Final = _secure_ok  # a secret first, too


_SECRETS: Final[dict[tuple[int, int], Callable[[Fields], Grammar]]] = {
    (10, 11): _start_ok,
    (10, 21): _secure_ok,
    (10, 70): _update_secret,
}


def masked_plain(response: bytes) -> bytes:
    """Hide the password in a response of PLAIN: NUL, user, NUL, password. Anything else is hidden as a whole."""
    first, user, *password = response.split(b"\0", 2)[:3] if response.count(b"\0") >= 2 else (b"x", b"")
    if first or not password:
        return HIDDEN * len(response)
    return b"\0" + user + b"\0" + HIDDEN * len(password[0])


def masked_amqplain(response: bytes) -> bytes:
    """Hide all but the user in a response of AMQPLAIN, a table of texts: others are hidden with all after them."""
    out, at = b"", 0
    while at < len(response):
        value_at = at + 1 + response[at] + 5
        name, kind = response[at + 1 : value_at - 5], response[value_at - 5 : value_at - 4]
        if kind != b"S" or value_at > len(response) or name not in (b"LOGIN", b"PASSWORD"):
            break
        end = value_at + int.from_bytes(response[value_at - 4 : value_at])
        if end > len(response):
            break
        out += response[at:value_at]
        out += response[value_at:end] if name == b"LOGIN" else HIDDEN * (end - value_at)
        at = end
    return out + HIDDEN * (len(response) - at)


_MASK_BY_MECHANISM: Final = {b"PLAIN": masked_plain, b"AMQPLAIN": masked_amqplain}
