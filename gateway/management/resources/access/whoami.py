"""/whoami, /login and /auth: the current user, logins, and password hashes."""

from functools import partial
from typing import Final
from urllib.parse import parse_qs

from twisted.internet.defer import Deferred

from gateway.access import Credentials, Principal
from gateway.access.passwords import hash_password
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.authenticating import authenticate
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, not_logged_in
from gateway.management.http.login_sessions import no_cookie, session_cookie, token_of
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()

#: Maximum size of a login form in bytes: it is received before authentication.
_MAX_LOGIN_FORM: Final = 8 * 1024
_MAX_FIELDS: Final = 100


@routes.get("/whoami")
def whoami(call: Call) -> Fields:
    """Return the user of the request."""
    return {"name": call.principal.name, "tags": sorted(call.principal.tags)}


@routes.post("/login", level=AccessLevel.PUBLIC, largest_body=_MAX_LOGIN_FORM, takes_form=True)
def login(call: Call) -> "Deferred[Reply]":
    """Begin a session of a user, whose name and password are sent as a form; the response sets its cookie."""
    try:
        form = parse_qs(call.content.decode(errors="replace"), max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise bad_request("the form has too many fields") from None
    username, password = (form.get(name, [""])[-1] for name in ("username", "password"))
    credentials = Credentials("PLAIN", username, password, peer_host=call.peer_host)
    return authenticate(call.context.login, credentials).addCallback(partial(_logged_in, call, username))


@routes.delete("/login", level=AccessLevel.PUBLIC)
def logout(call: Call) -> Reply:
    """End the session of the request's cookie; the response removes the cookie."""
    if (token := token_of(call.headers, is_secure=call.is_secure)) is not None:
        call.context.login_sessions.end(token)
    return Reply(204, headers=no_cookie(is_secure=call.is_secure))


@routes.get("/auth", level=AccessLevel.PUBLIC)
def auth(call: Call) -> Fields:
    """Return the authentication settings: OAuth is not supported."""
    return {"enable_uaa": False, "uaa_client_id": "", "uaa_location": "", "oauth_enabled": False}


@routes.get("/auth/hash_password/<password>")
def hashed(call: Call, password: str) -> Fields:
    """Return the hash of a password in the format of definitions."""
    return {"ok": hash_password(password)}


def _logged_in(call: Call, user: str, principal: Principal | None) -> Reply:
    call.broker.connections.count_login("http", principal is not None, user, call.peer_host)
    if principal is None:
        raise not_logged_in("Login failed", {})
    if (refusal := AccessLevel.MANAGEMENT.refusal(principal.tags)) is not None:
        raise refusal
    sessions = call.context.login_sessions
    token = sessions.begin(principal, is_local=call.context.login.is_local(call.peer_host))
    return Reply(200, "ok", session_cookie(token, sessions.lifetime_s, is_secure=call.is_secure))
