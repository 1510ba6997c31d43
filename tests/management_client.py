"""Requests to the HTTP API of a gateway in a child process, by default as the default user."""

import base64
import json
import urllib.request
from typing import Any, Final

from tests.running import Gateway

_GUEST: Final = "guest:guest"


def request(gateway: Gateway, method: str, path: str, fields: Any = None, *, login: str = _GUEST) -> Any:
    """Send a request below ``/api/``; return the decoded JSON, ``None`` for an empty response."""
    host, port = gateway.addresses["management"]
    content = None if fields is None else json.dumps(fields).encode()
    headers = {
        "Authorization": "Basic " + base64.b64encode(login.encode()).decode(),
        "Content-Type": "application/json",
    }
    asked = urllib.request.Request(f"http://{host}:{port}/api/{path}", content, headers, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        said = answer.read()
    return json.loads(said) if said else None


def put(gateway: Gateway, path: str, fields: Any) -> None:
    """Send a PUT request."""
    request(gateway, "PUT", path, fields)


def get(gateway: Gateway, path: str) -> Any:
    """Send a GET request."""
    return request(gateway, "GET", path)
