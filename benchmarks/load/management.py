"""A minimal client of the management API for the measurements."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from typing import Final
from urllib.parse import quote

from benchmarks.load.client_rig import BrokerRefused

Definition = Mapping[str, str | int]

HEADERS: Final = {"Authorization": f"Basic {b64encode(b'guest:guest').decode()}", "Content-Type": "application/json"}
VHOST: Final = quote("/", safe="")
#: The column with a queue's effective policy definition.
EFFECTIVE: Final = "effective_policy_definition"


class Management:
    """Sends requests to one broker, with one connection for each."""

    def __init__(self, port: int) -> None:
        self._port = port

    def put_policy(self, name: str, pattern: str, definition: Definition) -> None:
        """Set a policy for queues."""
        body = {"pattern": pattern, "definition": definition, "apply-to": "queues", "priority": 1}
        self.ask("PUT", f"/api/policies/{VHOST}/{quote(name)}", json.dumps(body))

    def definition_of(self, queue: str) -> Definition:
        """Return a queue's effective policy definition."""
        found: dict[str, Definition] = json.loads(self.ask("GET", f"/api/queues/{VHOST}/{quote(queue)}"))
        return found.get(EFFECTIVE) or {}

    def definitions(self, prefix: str) -> Sequence[Definition]:
        """Return the effective policy definitions of all queues with this name prefix."""
        answer = self.ask("GET", f"/api/queues/{VHOST}?columns=name,{EFFECTIVE}")
        return [queue.get(EFFECTIVE) or {} for queue in json.loads(answer) if queue["name"].startswith(prefix)]

    def ask(self, method: str, path: str, body: str | None = None) -> bytes:
        """Make a request; return the body of its answer."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=180.0)
        try:
            connection.request(method, path, body, HEADERS)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= 300:
            raise BrokerRefused(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
        return answer
