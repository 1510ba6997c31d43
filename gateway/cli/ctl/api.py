"""A client of the management API.

It uses the standard library's ``http.client``, which does not use proxies from the environment and does not normalise
paths, so that a queue named ``..`` can be addressed. It is also fast to import, which matters for frequent probes.
"""

import json
import ssl
from base64 import b64encode
from collections.abc import Iterable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlencode

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.errors import (
    BrokerFailed,
    BrokerUnreachable,
    Declined,
    NotPermitted,
    StillStarting,
    Unhealthy,
    UnknownEntity,
    WrongData,
)
from gateway.cli.ctl.values import Json, JsonObject, compact, objects
from gateway.version import VERSION

UNAUTHORIZED: Final = (401, 403)
NOT_FOUND: Final = 404
SERVER_ERROR: Final = 500


class ApiClient:
    """The management API at one address, as one user. Each request uses a new connection."""

    def __init__(
        self, address: ApiAddress, user: str, password: str, timeout_s: float | None, cacert: str | None = None
    ) -> None:
        self.address = address
        self.user = user
        self.timeout_s = timeout_s
        self._authorization = "Basic " + b64encode(f"{user}:{password}".encode(errors="surrogateescape")).decode()
        self._cacert = cacert

    def as_user(self, user: str, password: str) -> "ApiClient":
        """Return a client of the same API for another user."""
        return ApiClient(self.address, user, password, self.timeout_s, self._cacert)

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Json:
        """Get a path and decode the JSON. :raises CommandFailed: one of its subclasses, depending on the error."""
        return self._decoded(self.raw(*path, query=query))

    def list(self, *path: str, query: Mapping[str, str] | None = None) -> Iterable[JsonObject]:
        """Get the list of objects at a path."""
        return objects(self.get(*path, query=query))

    def raw(self, *path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Get a path, as the bytes sent by the broker."""
        return self._request("GET", path, query)

    def put(self, *path: str, body: Json) -> None:
        """Create or update the entity at a path."""
        self._request("PUT", path, body=_encoded(body))

    def put_raw(self, *path: str, body: bytes) -> None:
        """Put these bytes at a path."""
        self._request("PUT", path, body=body)

    def post(self, *path: str, body: bytes) -> None:
        """Post an encoded JSON document to a path."""
        self._request("POST", path, body=body)

    def ask(self, *path: str, body: Json) -> Json:
        """Post a JSON value to a path and decode the JSON of the answer."""
        return self._decoded(self._request("POST", path, body=_encoded(body)))

    def delete(self, *path: str, query: Mapping[str, str] | None = None, reason: str | None = None) -> None:
        """Delete the entity at a path; ``reason`` is sent to the client of a closed connection."""
        headers = {} if reason is None else {"X-Reason": " ".join(reason.split()).encode(errors="surrogateescape")}
        self._request("DELETE", path, query, headers=headers)

    def _request(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> bytes:
        target = f"{self.address.prefix}/api/{'/'.join(map(_segment, path))}{'?' + urlencode(query) if query else ''}"
        sent = {
            "Authorization": self._authorization,
            "Content-Type": "application/json",
            "User-Agent": f"gatewayctl/{VERSION}",
            **(headers or {}),
        }
        try:
            connection = self._connection()
            try:
                connection.request(method, target, body, sent)
                response = connection.getresponse()
                status, answer = response.status, response.read()
            finally:
                connection.close()
        except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: invalid host name
            raise BrokerUnreachable(f"no answer from {self.address.url}: {_error_text(error)}") from None
        if status >= 300:
            self._raise(status, answer)
        return answer

    def _connection(self) -> HTTPConnection:
        """Return a connection. :raises WrongData: if the file of ``--cacert`` is unreadable or has no certificates."""
        host, port = self.address.host, self.address.port
        if self.address.scheme == "http":
            return HTTPConnection(host, port, timeout=self.timeout_s)
        try:
            context = ssl.create_default_context(cafile=self._cacert)
        except OSError as error:
            raise WrongData(f"cannot use {self._cacert}: {_error_text(error)}") from None
        return HTTPSConnection(host, port, timeout=self.timeout_s, context=context)

    def _raise(self, status: int, answer: bytes) -> None:
        """Raise the error for a status other than success."""
        try:
            found = json.loads(answer)
        except ValueError:
            found = None
        error: JsonObject = found if isinstance(found, dict) else {}
        reason = _reason(error.get("reason")) or f"HTTP status {status}"
        if status in UNAUTHORIZED:
            raise NotPermitted(self.user, reason)
        if status == NOT_FOUND:
            raise UnknownEntity(reason)
        if error.get("status") == "starting":
            raise StillStarting(reason)
        if error.get("status") == "failed":
            raise Unhealthy(reason, dict(error))
        if status >= SERVER_ERROR or not error:
            raise BrokerFailed(f"{self.address.url} answered: {reason}")
        raise Declined(reason)

    def _decoded(self, answer: bytes) -> Json:
        try:
            value: Json = json.loads(answer)
        except ValueError:
            raise BrokerFailed(f"{self.address.url} is not a management API: its answer is not JSON") from None
        return value


def _segment(name: str) -> str:
    """Encode a name as one path segment; a name of dots is encoded too, since servers resolve ``..``."""
    if name and not name.strip("."):
        return "%2E" * len(name)
    return quote(name, safe="", errors="surrogateescape")


def _encoded(body: Json) -> bytes:
    return json.dumps(body).encode()


def _reason(reason: Json) -> str:
    """Return the broker's reason on one line: ``Validation failed: ...``."""
    if not isinstance(reason, str):
        return "" if reason is None else compact(reason)
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    return ": ".join(filter(None, ("".join(lines[:1]), "; ".join(lines[1:]))))


def _error_text(error: Exception) -> str:
    """Describe a network error without its number."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
