"""A client of the HTTP API; h11 encodes and decodes its messages."""

import json
from base64 import b64encode
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import h11

from gateway.simulation.clients.client import SimulatedClient
from gateway.simulation.clients.errors import Lost
from gateway.simulation.network.pipe import LinkQuality
from gateway.simulation.scene import Scene
from gateway.simulation.world.tasks import Promise, within

#: The quality of its connections: byte by byte, a long answer would take minutes.
_LINK: Final = LinkQuality(0.0, 0.005, 300)

#: Time for an answer, in seconds.
_ANSWER_S: Final = 90.0


class HttpAnswer(NamedTuple):
    """The status and the JSON value of an answer, ``None`` without a body."""

    status: int
    value: Any


class HttpClient:
    """Sends one request a connection, as the user ``guest``."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name

    async def request(self, method: str, *path: str, fields: object = None) -> HttpAnswer:
        """Send a request to ``/api`` and the quoted segments of a path. :raises Lost: without an answer."""
        exchange = _Exchange(self.scene, self.name)
        target = "/api/" + "/".join(quote(segment, safe="") for segment in path)
        self.scene.trace.add(self.name, f"-> {method} {target} {'' if fields is None else json.dumps(fields)}")
        answer = await exchange.perform(method, target, b"" if fields is None else json.dumps(fields).encode())
        self.scene.trace.add(self.name, f"<- {answer.status}")
        return answer


class _Exchange(SimulatedClient):
    """One request and its answer."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name, _LINK)
        self._http = h11.Connection(h11.CLIENT)
        self._answer: Promise[HttpAnswer] = Promise()
        self._status = 0
        self._body = b""

    async def perform(self, method: str, target: str, body: bytes) -> HttpAnswer:
        connection = self._open("management")
        headers = {
            "Host": "127.0.0.1",
            "Authorization": f"Basic {b64encode(b'guest:guest').decode()}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        head = h11.Request(method=method, target=target, headers=list(headers.items()))
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            connection.send(self._http.send(event) or b"")
        return await within(self.scene.world, self._answer, _ANSWER_S, f"{self.name}: {method} {target}")

    def received(self, data: bytes) -> None:
        self._http.receive_data(data)
        while (event := self._http.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Response):
                self._status = event.status_code
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._answer.fulfil(HttpAnswer(self._status, json.loads(self._body) if self._body else None))
                self.drop()
                return
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                return

    def closed(self) -> None:
        self._answer.fail(Lost("the connection ended"))
