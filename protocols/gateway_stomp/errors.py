"""ERROR frames for violations and refusals: a few words in ``message``, the details in the body."""

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

#: The ``message`` for a refusal of the kernel: the name of AMQP's reply code, as in RabbitMQ. The body begins with the
#: same words in capital letters. Clients check both.
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

#: The longest detail in characters: it may quote the client's input.
_LONGEST_DETAIL: Final = 1000


class StompError(ProtocolViolation):
    """A violation of STOMP. The connection ends with an ERROR of this ``message``, explained by ``detail``.

    ``logged`` replaces the detail in the log if the detail quotes input that may be a secret.
    """

    def __init__(self, message: str, detail: str, logged: str | None = None) -> None:
        super().__init__(detail)
        self.message = message
        self.logged = detail if logged is None else logged


def error_of(error: GatewayError) -> tuple[str, str]:
    """Return the ``message`` header and the body of the ERROR frame for an error."""
    detail = str(error)
    if isinstance(error, StompError):
        return error.message, detail[:_LONGEST_DETAIL]
    kinds = (MESSAGES[kind] for kind in type(error).__mro__ if kind in MESSAGES)
    message = next(kinds, None)
    if message is None:
        return "Processing error", detail[:_LONGEST_DETAIL]
    return message, f"{message.upper()} - {detail}"[:_LONGEST_DETAIL]
