"""The management API of a running gateway, for tests of the pipeline."""

import json
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from gateway_spark.archive import days
from gateway_spark.manifest import files_in
from tests.running import Gateway
from tests.waiting import wait_until

TIMEOUT_S: Final = 30.0


def url_of(gateway: Gateway) -> str:
    """Return the URL of the management port."""
    host, port = gateway.addresses["management"]
    return f"http://{host}:{port}"


def call(gateway: Gateway, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Make a request; return the decoded answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url_of(gateway)}/api/{path}", data, method=method)
    request.add_header("Authorization", "Basic " + b64encode(b"guest:guest").decode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        content = answer.read()
    return json.loads(content) if content else None


def wait_for_rows(table: Path, least: int) -> None:
    """Wait until a table of the archive or the trace has this many rows in listed files."""
    wait_until(
        lambda: sum(file.rows or 0 for day in days(table) for file in files_in(day)) >= least,
        f"{table} does not get {least} rows",
        timeout_s=TIMEOUT_S,
    )
