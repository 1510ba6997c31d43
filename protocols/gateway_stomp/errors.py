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

#: The ``message`` for a refusal of the kernel: AMQP's reply, as RabbitMQ names it. The body begins with the same words
#: in capital letters. Clients look for both.
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
    """A rule of STOMP was broken; the connection ends with an ERROR of this ``message``, explained by ``detail``.

    ``logged`` is what the log has of it in place of the detail, where that holds what the client sent and may be a
    secret.
    """

    def __init__(self, message: str, detail: str, logged: str | None = None) -> None:
        super().__init__(detail)
        self.message = message
        self.logged = detail if logged is None else logged


def error_of(error: GatewayError) -> tuple[str, str]:
    """Return the ``message`` header and the body of the ERROR frame that tells an error."""
    detail = str(error)
    if isinstance(error, StompError):
        return error.message, detail[:_LONGEST_DETAIL]
    kinds = (MESSAGES[kind] for kind in type(error).__mro__ if kind in MESSAGES)
    message = next(kinds, None)
    if message is None:
        return "Processing error", detail[:_LONGEST_DETAIL]
    return message, f"{message.upper()} - {detail}"[:_LONGEST_DETAIL]
