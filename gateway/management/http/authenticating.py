"""Authentication of requests: by credentials, with throttling after failed logins, or by a session's cookie."""

from collections.abc import Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.access import Access, Credentials, Principal
from gateway.management.context import ApiContext
from gateway.management.http.errors import HttpError, not_logged_in, too_many_attempts
from gateway.management.http.login_sessions import no_cookie, token_of
from gateway.management.web.request import Request

#: Methods that change nothing.
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


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


def principal_of_session(context: ApiContext, request: Request) -> Principal | None:
    """Return the user of a request's session; ``None`` if the request has credentials or no cookie.

    :raises HttpError: 401 if the session has ended, 403 for a change that a foreign page may have sent.
    """
    token = token_of(request.headers, is_secure=request.is_secure)
    if token is None or "authorization" in request.headers:
        return None
    is_local = context.login.is_local(request.peer_host)
    principal = context.login_sessions.principal_of(token, is_local=is_local)
    if principal is None:
        raise not_logged_in("the session has ended, log in again", no_cookie(is_secure=request.is_secure))
    if request.method not in _SAFE and not _names_its_page(request.headers):
        raise HttpError(403, "foreign_origin", "a change with a session's cookie needs the header 'Origin'")
    return principal


def _names_its_page(headers: Mapping[str, str]) -> bool:
    """Return whether a browser names the page that sends a request; a foreign page was refused before."""
    return "origin" in headers or headers.get("sec-fetch-site") == "same-origin"


def asks_for_login(headers: Mapping[str, str]) -> bool:
    """Return whether a client may be asked for a name and a password by a challenge.

    A script of a page shows its own form; for a challenge the browser would open a window of its own.
    """
    return "x-requested-with" not in headers and headers.get("sec-fetch-mode", "navigate") == "navigate"
