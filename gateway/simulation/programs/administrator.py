"""An administrator, who changes users, permissions and policies over the HTTP API."""

from typing import Final

from gateway.simulation.clients.errors import Lost
from gateway.simulation.clients.http import HttpAnswer, HttpClient
from gateway.simulation.scene import Scene

#: Answers to a request that may be sent again: it came too slowly, or the node is not ready.
_LATER: Final = (408, 503)

#: How often a request is sent, and the time between two of them in seconds.
_MOST_TRIES: Final = 100
_RETRY_S: Final = 0.1


class Administrator:
    """Sends requests until they are answered."""

    def __init__(self, scene: Scene, name: str) -> None:
        self._scene = scene
        self._http = HttpClient(scene, name)

    async def put(self, *path: str, fields: object) -> None:
        """Create or change something. :raises Lost: after many tries without an answer."""
        await self.request("PUT", *path, fields=fields)

    async def delete(self, *path: str) -> None:
        """Delete something, if it is there. :raises Lost: after many tries without an answer."""
        await self.request("DELETE", *path, statuses=(204, 404))

    async def permit(self, user: str, configure: str, write: str, read: str) -> None:
        """Set the permissions of a user."""
        await self.put("permissions", "/", user, fields={"configure": configure, "write": write, "read": read})

    async def request(
        self, method: str, *path: str, fields: object = None, statuses: tuple[int, ...] = (200, 201, 204)
    ) -> HttpAnswer:
        """Send a request until it is answered; return the answer. :raises Lost: after many tries without one."""
        for _ in range(_MOST_TRIES):
            try:
                answer = await self._http.request(method, *path, fields=fields)
            except Lost:
                await self._scene.sleep(_RETRY_S)
                continue
            if answer.status in _LATER:
                await self._scene.sleep(_RETRY_S)
                continue
            self._scene.findings.require(
                answer.status in statuses, "a valid request is not refused", f"{method} {'/'.join(path)}: {answer}"
            )
            return answer
        raise Lost("the administrator gives up")
