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
from gateway.management.http.errors import bad_request, login_failed
from gateway.management.http.routes import Fields, Routes

routes = Routes()

#: Maximum size of a login form in bytes: it is received before authentication.
_MAX_LOGIN_FORM: Final = 8 * 1024
_MAX_FIELDS: Final = 100


@routes.get("/whoami")
def whoami(call: Call) -> Fields:
    """Return the user of the request."""
    return {"name": call.principal.name, "tags": sorted(call.principal.tags)}


@routes.post("/login", level=AccessLevel.PUBLIC, largest_body=_MAX_LOGIN_FORM, takes_form=True)
def login(call: Call) -> "Deferred[str]":
    """Check a user name and a password, sent as a form, for access to the API. No session is created."""
    try:
        form = parse_qs(call.content.decode(errors="replace"), max_num_fields=_MAX_FIELDS)
    except ValueError:
        raise bad_request("the form has too many fields") from None
    username, password = (form.get(name, [""])[-1] for name in ("username", "password"))
    credentials = Credentials("PLAIN", username, password, peer_host=call.peer_host)
    return authenticate(call.context.login, credentials).addCallback(partial(_logged_in, call))


@routes.get("/auth", level=AccessLevel.PUBLIC)
def auth(call: Call) -> Fields:
    """Return the authentication settings: OAuth is not supported."""
    return {"enable_uaa": False, "uaa_client_id": "", "uaa_location": "", "oauth_enabled": False}


@routes.get("/auth/hash_password/<password>")
def hashed(call: Call, password: str) -> Fields:
    """Return the hash of a password in the format of definitions."""
    return {"ok": hash_password(password)}


def _logged_in(call: Call, principal: Principal | None) -> str:
    call.broker.connections.count_login("http", principal is not None)
    if principal is None:
        raise login_failed()
    if (refusal := AccessLevel.MANAGEMENT.refusal(principal.tags)) is not None:
        raise refusal
    return "ok"
