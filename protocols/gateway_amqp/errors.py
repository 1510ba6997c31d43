"""Errors of the kernel and the codec as AMQP 0-9-1 reply codes: one total table (1.8 of the XML)."""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    GatewayError,
    InternalError,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    PreconditionFailed,
    ProtocolViolation,
    Refused,
    ResourceLocked,
)
from gateway_amqp.methods import MalformedMethod, UnknownMethod
from gateway_amqp.tables import CutShort, MalformedField

REPLY_NAMES: Final[Mapping[int, str]] = {
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}


class ContentTooLarge(Refused):
    """A content that exceeds the connection's memory limit at the moment; the client may try again later."""


REPLY_CODES: Final[Mapping[type[Refused], int]] = {
    AccessRefused: 403,
    NotFound: 404,
    ResourceLocked: 405,
    PreconditionFailed: 406,
    CommandInvalid: 503,
    NotAllowed: 530,
    NotImplementedHere: 540,
    InternalError: 541,
    ContentTooLarge: 311,
}

#: Reply codes for malformed input. Where RabbitMQ closes the connection without a reply, the specification's code
#: (1.8): 501 for undecodable input, 502 for illegal values, 503 for unknown methods.
VIOLATION_CODES: Final[Mapping[type[ProtocolViolation], int]] = {
    ProtocolViolation: 501,
    MalformedMethod: 501,
    CutShort: 501,
    MalformedField: 502,
    UnknownMethod: 503,
}

_CODES: Final[Mapping[type, int]] = {**REPLY_CODES, **VIOLATION_CODES}

#: Refusals that close the connection; the others close the channel. An unknown exchange type is among them, as in
#: RabbitMQ.
HARD: Final = frozenset({501, 502, 503, 504, 505, 506, 530, 540, 541, 320, 402})

_TEXT_LIMIT: Final = 255
_OCTETS_SHOWN: Final = 32


class FrameError(ProtocolViolation):
    """A violation of the framing rules, with the reply code and the method in question, (0, 0) for none."""

    def __init__(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.class_id = class_id
        self.method_id = method_id


def unexpected(text: str, class_id: int = 0, method_id: int = 0) -> FrameError:
    """Return the error for an unexpected frame (505)."""
    return FrameError(505, text, class_id, method_id)


def channel_error(text: str, class_id: int = 0, method_id: int = 0) -> FrameError:
    """Return the error for a method in the wrong state of the channel (504)."""
    return FrameError(504, text, class_id, method_id)


def too_large(kind: int, size: int, frame_max: int) -> FrameError:
    """Return the error for a frame whose payload exceeds the negotiated size (501).

    The text names the negotiated payload. A frame is refused only if it exceeds that by more than 8 bytes: some clients
    do not count the 8 bytes around a payload, and RabbitMQ accepts their frames.
    """
    return FrameError(501, f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{frame_max - 8}}}")


def octets(payload: bytes) -> str:
    """Return the beginning of a payload as Erlang prints it, as in RabbitMQ's error texts."""
    shown = payload[:_OCTETS_SHOWN]
    if shown and all(0x20 <= octet < 0x7F for octet in shown):
        return f'<<"{shown.decode()}">>'
    return f"<<{','.join(map(str, shown))}>>"


def reply_code(error: GatewayError) -> int:
    """Return the reply code of an error."""
    if isinstance(error, FrameError):
        return error.code
    if isinstance(error, MalformedMethod) and isinstance(error.__cause__, MalformedField):
        return reply_code(error.__cause__)
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), 541)


def reply_text(code: int, explanation: str) -> str:
    """Return a reply text in RabbitMQ's format, cut to the length of a short string."""
    text = f"{REPLY_NAMES[code]} - {explanation}" if explanation else REPLY_NAMES[code]
    if len(text.encode()) <= _TEXT_LIMIT:
        return text
    return text.encode()[: _TEXT_LIMIT - 3].decode(errors="ignore") + "..."
