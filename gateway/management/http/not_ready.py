"""The HTTP API while the broker starts: it answers 503 with the progress."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.management.http.cross_origin import SECURITY_HEADERS
from gateway.management.views.json import encode
from gateway.management.web.request import Request

#: Time after which the client should retry, in seconds.
RETRY_AFTER_S: Final = 1


class NotReadyApi:
    """Answers every request with 503, without authentication, because users are not recovered yet.

    ``progress`` returns fields of the response: a ``reason`` as text, and numbers.
    """

    def __init__(self, progress: Callable[[], Mapping[str, object]]) -> None:
        self._progress = progress

    def begin(self, request: Request) -> None:
        """Answer a request without receiving its body."""
        content = encode({"error": "service_unavailable", "status": "starting", **self._progress()})
        headers = [
            (b"Cache-Control", b"no-cache, no-store"),
            *SECURITY_HEADERS,
            (b"Retry-After", b"%d" % RETRY_AFTER_S),
            (b"Content-Type", b"application/json"),
            (b"Connection", b"close"),  # the next request is for the running broker
        ]
        request.answer(503, headers, content)
