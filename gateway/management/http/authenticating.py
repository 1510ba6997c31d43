"""Authentication of requests, with throttling after failed logins."""

from typing import Any

from twisted.internet.defer import Deferred

from gateway.access import Access, Credentials
from gateway.management.http.errors import too_many_attempts


def authenticate(access: Access, credentials: Credentials) -> "Deferred[Any]":
    """Return a deferred of the principal, or of ``None`` if the login fails.

    A throttled request does not wait: the client is asked to retry later.

    :raises HttpError: 429 while logins of this user from this address are delayed.
    """
    if (wait_s := access.retry_after_s(credentials)) > 0:
        raise too_many_attempts(wait_s)
    result: Deferred[Any] = Deferred(canceller=lambda _: None)
    access.authenticate(credentials, lambda principal: None if result.called else result.callback(principal))
    return result
