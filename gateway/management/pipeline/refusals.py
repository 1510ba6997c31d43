"""Errors of the pipeline's endpoints, written for authors of jobs."""

from gateway.access import Operation, Permissions
from gateway.management.http.errors import HttpError


class DetailedRefusal(HttpError):
    """A refusal whose response contains further fields, ``details``."""

    def __init__(self, status: int, error: str, reason: str, **details: object) -> None:
        super().__init__(status, error, reason)
        self._details = details

    @property
    def fields(self) -> dict[str, object]:
        """The body of the response."""
        return {"error": self.error, "reason": self.reason, **self._details}


def not_found(reason: str) -> HttpError:
    """Return the error for a missing entity."""
    return HttpError(404, "not_found", reason)


def access_refused(permissions: Permissions, operation: Operation, kind: str, name: str) -> HttpError:
    """Return the error for a missing permission."""
    lacking = f"{operation.name.lower()} on {kind} '{name}' in vhost '{permissions.vhost}'"
    return HttpError(403, "access_refused", f"user '{permissions.user}' lacks the permission to {lacking}")


def offset_gone(name: str, offset: int, first: int) -> HttpError:
    """Return the error for an offset that retention has deleted."""
    reason = f"message {offset} of stream '{name}' was deleted by retention; the first one is {first}"
    return DetailedRefusal(410, "gone", reason, first=first)


def stream_recreated(name: str, incarnation: str) -> HttpError:
    """Return the error for messages of a deleted stream that has a successor of the same name."""
    reason = f"stream '{name}' was deleted and declared again; its earlier messages are gone"
    return DetailedRefusal(410, "recreated", reason, incarnation=incarnation)


def offset_ahead(name: str, offset: int, end: int) -> HttpError:
    """Return the error for an offset beyond the end of the stream."""
    return DetailedRefusal(416, "not_there_yet", f"stream '{name}' ends at {end}, before {offset}", next=end)


def too_large(what: str, setting: str, size: int, advice: str) -> HttpError:
    """Return the error for a size above a setting."""
    return HttpError(413, "too_large", f"{what} is larger than {size} bytes, the setting '{setting}'; {advice}")


def not_staged(attempt: str) -> HttpError:
    """Return the error for a batch whose staged rows are missing."""
    reason = "the staged rows of the batch do not exist at this broker, or they have expired"
    return DetailedRefusal(409, "not_staged", reason, attempt=attempt)


def not_committed() -> HttpError:
    """Return the error for a repeated batch that was never committed."""
    return HttpError(409, "not_staged", "the batch was committed when its tasks ran, and is not known any more")


def part_damaged(error: Exception, attempt: str) -> HttpError:
    """Return the error for a batch with a staged part that cannot be read."""
    return DetailedRefusal(409, "damaged", f"the staged rows of the batch are unusable: {error}", attempt=attempt)


def unroutable(exchange: str, routing_key: str) -> str:
    """Return the reason why a message cannot be published."""
    return f"a message to exchange '{exchange}' with routing key '{routing_key}' reaches no queue"
