"""What the pipeline's endpoints refuse, in words that a job's author understands."""

from gateway.access import Operation, Permissions
from gateway.management.http.errors import HttpError


class DetailedRefusal(HttpError):
    """A refusal with more to it than a reason: ``details`` go with it."""

    def __init__(self, status: int, error: str, reason: str, **details: object) -> None:
        super().__init__(status, error, reason)
        self._details = details

    @property
    def fields(self) -> dict[str, object]:
        """The body of the answer."""
        return {"error": self.error, "reason": self.reason, **self._details}


def not_found(reason: str) -> HttpError:
    """Say what is not there."""
    return HttpError(404, "not_found", reason)


def access_refused(permissions: Permissions, operation: Operation, kind: str, name: str) -> HttpError:
    """Say which permission the user lacks."""
    lacking = f"{operation.name.lower()} on {kind} '{name}' in vhost '{permissions.vhost}'"
    return HttpError(403, "access_refused", f"user '{permissions.user}' lacks the permission to {lacking}")


def offset_gone(name: str, offset: int, first: int) -> HttpError:
    """Say that retention was faster than the reader."""
    reason = f"message {offset} of stream '{name}' is gone; the first there is {first}"
    return DetailedRefusal(410, "gone", reason, first=first)


def offset_ahead(name: str, offset: int, end: int) -> HttpError:
    """Say that a reader is ahead of the stream."""
    return DetailedRefusal(416, "not_there_yet", f"stream '{name}' ends at {end}, before {offset}", next=end)


def too_large(what: str, setting: str, size: int, advice: str) -> HttpError:
    """Say which setting bounds what is too large."""
    return HttpError(413, "too_large", f"{what} is larger than {size} bytes, the setting '{setting}'; {advice}")
