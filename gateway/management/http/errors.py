"""Errors of the HTTP API: status, error and reason, with RabbitMQ's texts."""

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
    """An error response. Without ``error`` it has no body."""

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
        """The body of the response."""
        return {"error": self.error, "reason": self.reason} if self.error else None


def missing() -> HttpError:
    """Return the error for an unknown entity or path."""
    return HttpError(404, "Object Not Found", "Not Found")


def unknown_vhost() -> HttpError:
    """Return the error for a change in an unknown virtual host."""
    return HttpError(404, "not_found", "vhost_not_found")


def bad_request(reason: object) -> HttpError:
    """Return the error for an invalid request."""
    return HttpError(400, BAD_REQUEST, reason)


def forbidden(reason: str) -> HttpError:
    """Return the error for a missing permission; as in RabbitMQ it has status 401."""
    return HttpError(401, UNAUTHORISED, reason)


def anonymous() -> HttpError:
    """Return the error for a request without credentials."""
    return HttpError(401, headers={"WWW-Authenticate": CHALLENGE})


def not_logged_in(reason: str, headers: Mapping[str, str]) -> HttpError:
    """Return the error for a request without a valid login, without a challenge."""
    return HttpError(401, "not_authorized", reason, headers)


def login_failed() -> HttpError:
    """Return the error for wrong credentials."""
    return HttpError(401, "not_authorized", "Login failed", {"WWW-Authenticate": CHALLENGE})


def without_challenge(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an error without the challenge to log in."""
    return {name: value for name, value in headers.items() if name != "WWW-Authenticate"}


def too_many_attempts(retry_after_s: float) -> HttpError:
    """Return the error for a throttled login, with the time to retry."""
    seconds = max(1, ceil(retry_after_s))
    reason = f"too many failed logins, retry after {seconds} s"
    return HttpError(429, "too_many_requests", reason, {"Retry-After": str(seconds)})


def busy(reason: str) -> HttpError:
    """Return the error for a lack of capacity, with the time to retry."""
    return HttpError(503, "service_unavailable", reason, {"Retry-After": "1"})


#: HTTP status and error of the kernel's refusals.
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
    """Convert a refusal of the kernel."""
    status, name = STATUSES.get(type(error), (400, BAD_REQUEST))
    reason = "Access refused." if isinstance(error, AccessRefused) else str(error)
    return HttpError(status, name, reason)


def as_channel_error(refusal: Refused) -> HttpError:
    """Convert the refusal of a publish to the text of RabbitMQ's channel error."""
    codes: dict[type[Refused], str] = {
        AccessRefused: "403 ACCESS_REFUSED",
        NotFound: "404 NOT_FOUND",
        PreconditionFailed: "406 PRECONDITION_FAILED",
    }
    return bad_request(f"{codes.get(type(refusal), '541 INTERNAL_ERROR')} - {refusal}")
