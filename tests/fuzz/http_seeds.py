"""Requests to the management API, as rabbitmqadmin and browsers send them."""

import json
from base64 import b64encode
from typing import Final

from tests.fuzz.mutating import Session
from tests.fuzz.sandbox import PASSWORD, USER, VHOST

AUTHORIZATION: Final = "Basic " + b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def request(method: str, path: str, body: object = None, *headers: str) -> bytes:
    """Return a request with the user's login."""
    content = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost:15672",
        f"Authorization: {AUTHORIZATION}",
        *headers,
        *([f"Content-Length: {len(content)}", "Content-Type: application/json"] if content else []),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


_QUEUE: Final = {"durable": True, "auto_delete": False, "arguments": {"x-max-length": 10, "x-message-ttl": 60000}}
_PUBLISH: Final = {
    "properties": {"headers": {"a": 1}, "delivery_mode": 2, "priority": 3},
    "routing_key": "fuzz.q",
    "payload": "aGk=",
    "payload_encoding": "base64",
}
_REST: Final = b'": "hi", "payload_encoding": "string", "routing_key": "", "properties": {}}'
_GET: Final = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 100}
_POLICY: Final = {"pattern": "^fuzz", "definition": {"max-length": 100}, "priority": 1, "apply-to": "queues"}

SESSIONS: Final[tuple[Session, ...]] = (
    (
        request("PUT", f"/api/queues/{VHOST}/fuzz.q", _QUEUE),
        request("POST", f"/api/exchanges/{VHOST}/amq.default/publish", _PUBLISH),
        request("POST", f"/api/queues/{VHOST}/fuzz.q/get", _GET),
        request("GET", f"/api/queues/{VHOST}?page=1&page_size=10&name=fuzz&use_regex=true&sort=name"),
        request("DELETE", f"/api/queues/{VHOST}/fuzz.q/contents"),
        request("DELETE", f"/api/queues/{VHOST}/fuzz.q?if-recreate_vhost=true"),
    ),
    (
        request("GET", "/api/overview"),
        request("GET", "/api/whoami", None, "Accept-Encoding: gzip", "If-None-Match: x"),
        request("GET", f"/api/connections?columns=name,state&vhost={VHOST}"),
        request("GET", "/", None, "Accept: text/html"),
        request("OPTIONS", "/api/overview", None, "Origin: http://localhost:15672"),
    ),
    (
        request("PUT", f"/api/exchanges/{VHOST}/fuzz.x", {"type": "topic", "durable": True, "arguments": {}}),
        request("POST", f"/api/bindings/{VHOST}/e/fuzz.x/q/fuzz.q", {"routing_key": "a.*", "arguments": {"k": [1]}}),
        request("GET", f"/api/bindings/{VHOST}"),
        request("PUT", f"/api/policies/{VHOST}/fuzz", _POLICY),
        request("DELETE", f"/api/policies/{VHOST}/fuzz"),
        request("GET", f"/api/definitions/{VHOST}"),
    ),
    (
        request("POST", f"/api/exchanges/{VHOST}/amq.fanout/publish", None, "Transfer-Encoding: chunked"),
        b'9\r\n{"payload\r\n%x\r\n%b\r\n0\r\n\r\n' % (len(_REST), _REST),
        request("GET", "/api/parameters", None, "Expect: 100-continue", "Connection: close"),
    ),
)
