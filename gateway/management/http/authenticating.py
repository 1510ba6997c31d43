"""Who sends a request: asked of the authenticators, unless too many logins failed."""

from typing import Any

from twisted.internet.defer import Deferred

from gateway.access import Access, Credentials
from gateway.management.http.errors import too_many_attempts


def authenticate(access: Access, credentials: Credentials) -> "Deferred[Any]":
    """Return who this is, or ``None``, now or later.

    A request is never kept waiting because of failed logins: the client is told when to try again.

    :raises HttpError: 429 while logins of this user from this address are delayed.
    """
    if (wait_s := access.retry_after_s(credentials)) > 0:
        raise too_many_attempts(wait_s)
    judged: Deferred[Any] = Deferred(canceller=lambda _: None)
    access.authenticate(credentials, lambda principal: None if judged.called else judged.callback(principal))
    return judged
