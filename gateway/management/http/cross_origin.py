"""Cross-origin protection: requests of foreign web pages are refused unless a setting allows them (CORS).

Programs do not send ``Origin``. A script of a web page needs CORS for requests that a form cannot send; the content
types of forms (``text/plain`` and others) are refused, so that a form cannot change anything.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Endpoint
from gateway.management.web.request import Headers, Request
from gateway.net.origins import ANY, OriginRules

#: Sent with every response: no response is a page, may be framed, sniffed or cached.
SECURITY_HEADERS: Final[Headers] = [
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
    (b"Content-Security-Policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"Referrer-Policy", b"no-referrer"),
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
    (b"Vary", b"Origin"),
]

_FORMS: Final = frozenset({"text/plain", "multipart/form-data"})

#: Sent by ``curl -d`` for any body, so it does not prove that a form sent it.
_URLENCODED: Final = "application/x-www-form-urlencoded"
_BROWSER_HEADERS: Final = ("origin", "referer", "sec-fetch-site", "sec-fetch-mode", "cookie")

_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})


@dataclass(frozen=True, slots=True)
class CrossOriginPolicy:
    """Checks the origin of requests. ``max_age_s`` is the time for which browsers cache the answer to a preflight."""

    rules: OriginRules
    max_age_s: int = 1800

    def require_allowed_origin(self, request: Request) -> None:
        """Check that no foreign page sends a request. :raises HttpError: 403 if one does."""
        headers = request.headers
        origin = headers.get("origin")
        if "host" in headers or origin is not None:
            refusal = self.rules.refusal(headers.get("host", ""), origin, is_local=request.is_local)
            if refusal is not None:
                raise _foreign_origin(refusal)
        if headers.get("sec-fetch-site") in _FOREIGN_SITES and (origin is None or not self.rules.allows(origin)):
            is_visit = request.method in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
            if not is_visit:
                raise _foreign_origin("sent by a web page whose origin 'management.cors_allow_origins' does not allow")

    def cors(self, request: Request) -> Headers:
        """Return the CORS headers for the origin of a request; none if it is not allowed."""
        origin = request.headers.get("origin")
        if origin is None or not self.rules.allows(origin):
            return []
        if ANY in self.rules.origins:
            allowed: Headers = [(b"Access-Control-Allow-Origin", b"*")]
        else:
            allowed = [
                (b"Access-Control-Allow-Origin", origin.encode("latin-1", "replace")),
                (b"Access-Control-Allow-Credentials", b"true"),
            ]
        return [*allowed, (b"Access-Control-Expose-Headers", b"Location, X-First-Offset, X-Next-Offset")]

    def preflight(self, request: Request, allowed: str) -> Headers:
        """Return the CORS headers for a preflight request (``OPTIONS``)."""
        headers = self.cors(request)
        if not headers or "access-control-request-method" not in request.headers:
            return headers
        return [
            *headers,
            (b"Access-Control-Allow-Methods", allowed.encode()),
            (b"Access-Control-Allow-Headers", b"Authorization, Content-Type, X-Reason"),
            (b"Access-Control-Max-Age", b"%d" % self.max_age_s),
        ]


def cross_origin_policy(origins: Collection[str], hosts: Collection[str], max_age_s: int) -> CrossOriginPolicy:
    """Return the policy for these settings."""
    return CrossOriginPolicy(OriginRules(tuple(origins), tuple(hosts)), max_age_s)


def require_no_form(request: Request, route: Endpoint) -> None:
    """Check that the body is not a form's. :raises HttpError: 415 if it is."""
    if request.declared_size == 0 or route.takes_form:
        return
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _FORMS or (kind == _URLENCODED and _is_from_browser(request.headers)):
        raise HttpError(415, "bad_request", f"the body must be application/json, not {kind}")


def _is_from_browser(headers: Mapping[str, str]) -> bool:
    signs: Iterable[str] = _BROWSER_HEADERS
    return any(sign in headers for sign in signs) or headers.get("user-agent", "").startswith("Mozilla/")


def _foreign_origin(reason: str) -> HttpError:
    return HttpError(403, "foreign_origin", reason)
