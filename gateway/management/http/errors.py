"""What the HTTP API answers when it does not do what was asked: status, error and reason, as RabbitMQ words them."""

from collections.abc import Mapping
from math import ceil
from typing import Final

from gateway.kernel.errors import (
    AccessRefused,
    CommandInvalid,
    ConfigurationError,
    GatewayError,
    InternalError,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    PreconditionFailed,
    Refused,
    ResourceLocked,
)

UNAUTHORISED: Final = "not_authorised"
BAD_REQUEST: Final = "bad_request"
CHALLENGE: Final = 'Basic realm="gateway management"'


class HttpError(Exception):
    """A request that is answered with an error. ``reason`` is empty for an answer without a body."""

    def __init__(
        self, status: int, error: str = "", reason: object = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason
        self.headers = headers or {}

    @property
    def fields(self) -> dict[str, object] | None:
        """The body of the answer."""
        return {"error": self.error, "reason": self.reason} if self.error else None


def missing() -> HttpError:
    """Say that there is no such object, or no such path."""
    return HttpError(404, "Object Not Found", "Not Found")


def unknown_vhost() -> HttpError:
    """Say that something was to be put into a virtual host that is not there."""
    return HttpError(404, "not_found", "vhost_not_found")


def bad_request(reason: object) -> HttpError:
    """Say what is wrong with a request."""
    return HttpError(400, BAD_REQUEST, reason)


def forbidden(reason: str) -> HttpError:
    """Say what the user lacks. RabbitMQ has 401 for this, too."""
    return HttpError(401, UNAUTHORISED, reason)


def anonymous() -> HttpError:
    """Ask somebody who did not say who they are."""
    return HttpError(401, headers={"WWW-Authenticate": CHALLENGE})


def login_failed() -> HttpError:
    """Ask again somebody whom nobody vouches for."""
    return HttpError(401, "not_authorized", "Login failed", {"WWW-Authenticate": CHALLENGE})


def too_many_attempts(retry_after_s: float) -> HttpError:
    """Ask a client to come back later, since too many logins failed."""
    seconds = max(1, ceil(retry_after_s))
    reason = f"too many failed logins, retry after {seconds} s"
    return HttpError(429, "too_many_requests", reason, {"Retry-After": str(seconds)})


def busy(reason: str) -> HttpError:
    """Refuse what there is no room for at the moment."""
    return HttpError(503, "service_unavailable", reason, {"Retry-After": "1"})


#: The kernel's refusals as an HTTP status and error.
STATUSES: Final[Mapping[type[GatewayError], tuple[int, str]]] = {
    AccessRefused: (401, UNAUTHORISED),
    NotFound: (404, "not_found"),
    ResourceLocked: (400, BAD_REQUEST),
    PreconditionFailed: (400, BAD_REQUEST),
    NotAllowed: (400, BAD_REQUEST),
    CommandInvalid: (400, BAD_REQUEST),
    NotImplementedHere: (400, BAD_REQUEST),
    InternalError: (500, "internal_error"),
    ConfigurationError: (400, BAD_REQUEST),
}


def translated(error: GatewayError) -> HttpError:
    """Return the answer to a request that the kernel declined."""
    status, name = STATUSES.get(type(error), (400, BAD_REQUEST))
    reason = "Access refused." if isinstance(error, AccessRefused) else str(error)
    return HttpError(status, name, reason)


def as_channel_error(refusal: Refused) -> HttpError:
    """Return the answer to a publish that was declined: RabbitMQ shows what its channel said."""
    codes: dict[type[Refused], str] = {
        AccessRefused: "403 ACCESS_REFUSED",
        NotFound: "404 NOT_FOUND",
        PreconditionFailed: "406 PRECONDITION_FAILED",
    }
    return bad_request(f"{codes.get(type(refusal), '541 INTERNAL_ERROR')} - {refusal}")
