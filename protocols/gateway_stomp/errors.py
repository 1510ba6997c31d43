"""What a client did wrong, or was refused, as an ERROR frame tells it: a few words in ``message``, the rest as body."""

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

#: Where a refusal of the kernel comes from a frame, RabbitMQ names it by AMQP's reply; clients look for these words.
MESSAGES: Final[Mapping[type[Refused], str]] = {
    AccessRefused: "access_refused",
    NotFound: "not_found",
    ResourceLocked: "resource_locked",
    PreconditionFailed: "precondition_failed",
    CommandInvalid: "command_invalid",
    NotAllowed: "not_allowed",
    NotImplementedHere: "not_implemented",
    InternalError: "internal_error",
}

#: The longest detail told, in characters: it may hold what the client sent, which may be long.
_LONGEST_DETAIL: Final = 1000


class StompError(ProtocolViolation):
    """A rule of STOMP was broken; the connection ends with an ERROR of this ``message``, explained by ``detail``."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(detail)
        self.message = message


def error_of(error: GatewayError) -> tuple[str, str]:
    """Return the ``message`` header and the body of the ERROR frame that tells an error."""
    detail = str(error)[:_LONGEST_DETAIL]
    if isinstance(error, StompError):
        return error.message, detail
    kinds = (MESSAGES[kind] for kind in type(error).__mro__ if kind in MESSAGES)
    return next(kinds, "Processing error"), detail
