"""/whoami and /auth: who is asking, and what passwords look like inside."""

from gateway.management.authority import Level
from gateway.management.call import Call
from gateway.management.routes import Fields, Routes
from gateway.passwords import hash_password

routes = Routes()


@routes.get("/whoami")
def whoami(call: Call) -> Fields:
    """Tell who is asking."""
    return {"name": call.principal.name, "tags": sorted(call.principal.tags)}


@routes.get("/auth", level=Level.ANYBODY)
def auth(call: Call) -> Fields:
    """Tell how one logs in: not through an OAuth server."""
    return {"enable_uaa": False, "uaa_client_id": "", "uaa_location": "", "oauth_enabled": False}


@routes.get("/auth/hash_password/<password>", level=Level.ANYBODY)
def hashed(call: Call, password: str) -> Fields:
    """Hash a password as users' records hold it."""
    return {"ok": hash_password(password)}
