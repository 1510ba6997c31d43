"""A client of the management API.

It uses the standard library's ``http.client``, which does not use proxies from the environment and does not normalise
paths, so that a queue named ``..`` can be addressed. It is also fast to import, which matters for frequent probes.
"""

import json
import ssl
from collections.abc import Iterable, Iterator, Mapping
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    RemoteDisconnected,
)
from typing import Final
from urllib.parse import quote, urlencode

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.connecting.credentials import ApiCredentials
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
from gateway.cli.ctl.progress import Progress
from gateway.cli.ctl.values import Json, JsonObject, compact, objects
from gateway.version import VERSION

UNAUTHORIZED: Final = (401, 403)
NOT_FOUND: Final = 404
SERVER_ERROR: Final = 500

#: Time without a line after which a stream is lost, in seconds; the broker sends empty ones.
STREAM_TIMEOUT_S: Final = 30.0

#: Bytes read at once.
_PIECE: Final = 2**20


class ApiClient:
    """The management API at one address, as one user. Each request uses a new connection."""

    def __init__(
        self,
        address: ApiAddress,
        credentials: ApiCredentials,
        timeout_s: float | None,
        cacert: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self._credentials = credentials
        self._cacert = cacert
        self._progress = progress or Progress(is_wanted=False)

    def as_user(self, user: str, password: str) -> "ApiClient":
        """Return a client of the same API for another user."""
        credentials = ApiCredentials.of_password(user, password)
        return ApiClient(self.address, credentials, self.timeout_s, self._cacert, self._progress)

    def at(self, address: ApiAddress, credentials: ApiCredentials) -> "ApiClient":
        """Return a client of another API."""
        return ApiClient(address, credentials, self.timeout_s, self._cacert, self._progress)

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Json:
        """Get a path and decode the JSON. :raises CommandFailed: one of its subclasses, depending on the error."""
        return self._decoded(self.raw(*path, query=query))

    def list(self, *path: str, query: Mapping[str, str] | None = None) -> Iterable[JsonObject]:
        """Get the list of objects at a path."""
        return objects(self.get(*path, query=query))

    def raw(self, *path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Get a path, as the bytes sent by the broker."""
        return self._request("GET", path, query)

    def call(self, method: str, *path: str, query: Mapping[str, str] | None = None, body: bytes | None = None) -> bytes:
        """Send a request of any method to a path; return the answer, as the bytes sent by the broker."""
        return self._request(method, path, query, body)

    def put(self, *path: str, body: Json) -> None:
        """Create or update the entity at a path."""
        self._request("PUT", path, body=_encoded(body))

    def put_raw(self, *path: str, body: bytes) -> None:
        """Put these bytes at a path."""
        self._request("PUT", path, body=body)

    def lines(self, *path: str, query: Mapping[str, str] | None = None) -> Iterator[str]:
        """Get a path and yield its lines as they come, without empty ones, which only show that the broker lives."""
        try:
            connection, response = self._open("GET", path, query, timeout_s=STREAM_TIMEOUT_S)
            try:
                if response.status >= 300:
                    self._raise(response.status, response.read())
                while line := response.readline():
                    if text := line.decode(errors="replace").rstrip("\n"):
                        yield text
            finally:
                connection.close()
        except (OSError, HTTPException, UnicodeError) as error:
            raise BrokerUnreachable(f"no answer from {self.address.url}: {_error_text(error)}") from None

    def text_at(self, address: ApiAddress, path: str) -> str:
        """Get a page of another listener of the same broker. The login is sent unless that would be less safe."""
        is_safe = address.scheme == "https" or self.address.scheme == "http"
        headers = {"Authorization": self._credentials.authorization} if is_safe else {}
        other = ApiClient(address, self._credentials, self.timeout_s, self._cacert)
        try:
            connection = other._connection(self.timeout_s)
            try:
                connection.request("GET", path, headers=headers)
                response = connection.getresponse()
                status, answer = response.status, response.read()
            finally:
                connection.close()
        except (OSError, HTTPException, UnicodeError) as error:
            raise BrokerUnreachable(f"no answer from {address.url}: {_error_text(error)}") from None
        if status >= 300:
            other._raise(status, answer)
        return answer.decode(errors="replace")

    def post(self, *path: str, body: bytes) -> None:
        """Post an encoded JSON document to a path."""
        self._request("POST", path, body=body)

    def ask(self, *path: str, body: Json) -> Json:
        """Post a JSON value to a path and decode the JSON of the answer."""
        return self._decoded(self._request("POST", path, body=_encoded(body)))

    def ask_raw(self, *path: str, body: bytes, query: Mapping[str, str] | None = None) -> Json:
        """Post an encoded JSON document to a path and decode the JSON of the answer."""
        return self._decoded(self._request("POST", path, query, body))

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
        try:
            with self._progress.during(f"waiting for {self.address.url}"):
                connection, response = self._open(method, path, query, body, headers, self.timeout_s)
                try:
                    status, answer = response.status, self._read(response)
                finally:
                    connection.close()
        except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: invalid host name
            raise BrokerUnreachable(f"no answer from {self.address.url}: {_error_text(error)}") from None
        if status >= 300:
            self._raise(status, answer)
        return answer

    def _open(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        timeout_s: float | None = None,
    ) -> tuple[HTTPConnection, HTTPResponse]:
        """Send a request and return its connection, which the caller closes, and the response."""
        target = f"{self.address.prefix}/api/{'/'.join(map(_segment, path))}{'?' + urlencode(query) if query else ''}"
        sent: dict[str, str | bytes] = {
            "Authorization": self._credentials.authorization,
            "Content-Type": "application/json",
            "User-Agent": f"gatewayctl/{VERSION}",
            **(headers or {}),
        }
        connection = self._connection(timeout_s)
        try:
            connection.request(method, target, body, sent)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _read(self, response: HTTPResponse) -> bytes:
        """Read a response, and show how much has come."""
        pieces, size = [], 0
        while piece := response.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > _PIECE:
                self._progress.say(f"received {size / 1e6:.1f} MB")
        return b"".join(pieces)

    def _connection(self, timeout_s: float | None) -> HTTPConnection:
        """Return a connection. :raises WrongData: if the file of ``--cacert`` is unreadable or has no certificates."""
        host, port = self.address.host, self.address.port
        if self.address.scheme == "http":
            return HTTPConnection(host, port, timeout=timeout_s)
        try:
            context = ssl.create_default_context(cafile=self._cacert)
        except OSError as error:
            raise WrongData(f"cannot use {self._cacert}: {_error_text(error)}") from None
        return HTTPSConnection(host, port, timeout=timeout_s, context=context)

    def _raise(self, status: int, answer: bytes) -> None:
        """Raise the error for a status other than success."""
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):
            found = None
        error: JsonObject = found if isinstance(found, dict) else {}
        reason = _reason(error.get("reason")) or f"HTTP status {status}"
        if status in UNAUTHORIZED:
            raise NotPermitted(self._credentials.user, reason)
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
        except (ValueError, RecursionError):
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
    """Describe a network error without its number, and what may be mended."""
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}; --cacert or a profile's ca names its CA"
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "it does not speak TLS, as a port of http:// does not"
    if isinstance(error, RemoteDisconnected):
        return "it closed the connection without an answer, as a port of https:// does"
    if isinstance(error, BadStatusLine):
        return "it is not an HTTP server"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
