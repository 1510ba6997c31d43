"""An HTTP client with a bounded number of requests, for servers that decide on access."""

import io
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from twisted.internet import ssl
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web import client
from twisted.web.http_headers import Headers

from gateway.api import ConfigurationError, StructuredLog

_log: Final = StructuredLog("access")

_client: Final[Any] = client  # these parts of Twisted have no types
_ssl: Final[Any] = ssl

#: The largest response, in bytes.
LARGEST_RESPONSE: Final = 1024 * 1024

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"


class UnusableResponse(Exception):
    """The server gave no usable response; the text is the reason."""


class HttpClient:
    """Sends requests, at most ``most_parallel`` at a time; beyond ``most_waiting`` others they fail at once.

    A request fails after ``timeout_s``, counted from when it is sent. ``purpose`` names the server in the log; URLs are
    not logged, because they may hold passwords.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's reactors have no common type
        purpose: str,
        *,
        timeout_s: float,
        most_parallel: int,
        most_waiting: int = 1000,
        ca_file: str = "",
    ) -> None:
        """:raises ConfigurationError: if ``ca_file`` cannot be used."""
        pool = _client.HTTPConnectionPool(reactor, persistent=True)
        pool.maxPersistentPerHost = most_parallel
        policy = _client.BrowserLikePolicyForHTTPS(_trust_root(ca_file))
        self._agent = _client.Agent(reactor, policy, connectTimeout=timeout_s, pool=pool)
        self._pool = pool
        self._reactor = reactor
        self._purpose = purpose
        self._timeout_s = timeout_s
        self._most_parallel = most_parallel
        self._most_waiting = most_waiting
        self._running = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def close(self) -> None:
        """Close idle connections at once, and each of the others after its response."""
        self._pool.cachedConnectionTimeout = 0
        self._pool.closeCachedConnections()

    def request(self, method: str, url: str, form: bytes, answer: Callable[[bytes | None], None]) -> None:
        """Send a request; ``answer`` gets the body of a response 200 or 201, or ``None`` after an error was logged.

        ``form`` is the urlencoded body of a POST, and the query of a GET.
        """
        if self._running < self._most_parallel:
            self._send(method, url, form, answer)
        elif len(self._waiting) < self._most_waiting:
            self._waiting.append(lambda: self._send(method, url, form, answer))
        else:
            self._log_failure("too many requests wait for it")
            answer(None)

    def _send(self, method: str, url: str, form: bytes, answer: Callable[[bytes | None], None]) -> None:
        self._running += 1
        done = self._sent(method, url, form)
        done.addTimeout(self._timeout_s, self._reactor)
        done.addErrback(self._failed)

        def ended(body: bytes | None) -> None:
            self._running -= 1
            if self._waiting:
                self._waiting.popleft()()
            answer(body)

        done.addCallback(ended)

    def _sent(self, method: str, url: str, form: bytes) -> "Deferred[Any]":
        headers = Headers({b"User-Agent": [b"gateway"]})
        body = None
        if method == "POST":
            headers.addRawHeader(b"Content-Type", b"application/x-www-form-urlencoded")
            body = _client.FileBodyProducer(io.BytesIO(form))
        elif form:
            url = f"{url}{'&' if '?' in url else '?'}{form.decode('ascii')}"
        sent: Deferred[Any] = self._agent.request(method.encode(), url.encode(), headers, body)
        return sent.addCallback(self._read)

    def _read(self, response: Any) -> Any:
        if response.code not in (200, 201):
            raise UnusableResponse(f"it answered with status {response.code}")
        if isinstance(response.length, int) and response.length > LARGEST_RESPONSE:
            raise UnusableResponse(f"its response has {response.length} bytes")
        return _client.readBody(response)

    def _failed(self, failure: Failure) -> None:
        error: Any = failure.value
        reasons = getattr(error, "reasons", None)  # Twisted's errors of a response hold the actual one
        if reasons:
            error = reasons[0].value
        self._log_failure(str(error) or type(error).__name__)

    def _log_failure(self, reason: str) -> None:
        _log.warning("access server gave no answer", server=self._purpose, reason=reason[:200])


def _trust_root(ca_file: str) -> Any:
    """Return what certificates are verified against: those of a file in PEM format, else the system's."""
    if not ca_file:
        return None
    try:
        blocks = Path(ca_file).read_text(encoding="ascii").split(_BEGIN)[1:]
        loaded = [_ssl.Certificate.loadPEM(_BEGIN + block) for block in blocks]
    except Exception as error:  # a file that is missing, or not a certificate
        raise ConfigurationError(f"ca_file: cannot read certificates from {ca_file}: {error}") from None
    if not loaded:
        raise ConfigurationError(f"ca_file: {ca_file} holds no certificate in PEM format")
    return _ssl.trustRootFromCertificates(loaded)
