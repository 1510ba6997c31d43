"""Credentials, query and names of an HTTP request."""

from base64 import b64decode
from binascii import Error as NotBase64
from urllib.parse import unquote

from gateway.access import Credentials
from gateway.management.http.errors import anonymous, bad_request, login_failed
from gateway.management.web.request import Request


def credentials_of(request: Request) -> Credentials:
    """Return a request's credentials. :raises HttpError: if they are missing or malformed."""
    header = request.headers.get("authorization")
    if header is None:
        raise anonymous()
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() == "bearer":
        return Credentials("BEARER", password=encoded.strip(), peer_host=request.peer_host)
    if scheme.lower() != "basic":
        raise login_failed()
    try:
        user, _, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (NotBase64, ValueError):
        raise bad_request("the Authorization header cannot be decoded") from None
    return Credentials("PLAIN", user, password, peer_host=request.peer_host)


def query_of(request: Request) -> dict[str, str]:
    """Return the query of a request. :raises HttpError: if it has too many fields."""
    try:
        return request.query
    except ValueError:
        raise bad_request("the query has too many fields") from None


def values_of(request: Request, name: str) -> list[str]:
    """Return all values of a field of the query. :raises HttpError: if it has too many fields."""
    try:
        return request.values(name)
    except ValueError:
        raise bad_request("the query has too many fields") from None


def decoded(segment: str) -> str:
    """Decode a segment of a path. :raises HttpError: if it is not UTF-8."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("the path is not UTF-8") from None
