"""An operator who changes policies and definitions while clients work."""

from random import Random
from typing import Any, Final

from gateway.simulation.clients.errors import Lost
from gateway.simulation.clients.http import HttpClient
from gateway.simulation.programs.program import Program
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: Answers to a request that may be sent again: it came too slowly, or the node is not ready.
_LATER: Final = (408, 503)

#: Parts of the definitions that another program changes meanwhile.
_OF_ANOTHER: Final = ("users", "permissions")

#: Policies that change nothing for the clients' messages, but what the queues do with each of them.
_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"message-ttl": 30 * 86_400_000},
    {"max-length": 100_000, "overflow": "reject-publish"},
    {"max-length-bytes": 2**30},
    {"dead-letter-exchange": "amq.fanout", "expires": 30 * 86_400_000},
)


class Operator(Program):
    """Sets and deletes a policy for the shared queues, and imports the broker's own definitions again."""

    kind = "operator"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._http = HttpClient(scene, self.name)
        self._left = random.randint(2, 6)

    async def attempt(self) -> bool:
        """Make the changes that are left."""
        while self._left and not self.is_stopping:
            await self.random.choice((self._set_policy, self._delete_policy, self._import_definitions))()
            self._left -= 1
            await self.pause()
        return True

    async def _set_policy(self) -> None:
        fields = {"pattern": "^queue-", "definition": self.random.choice(_POLICIES), "apply-to": "queues"}
        await self._require("PUT", "policies", "/", self.name, fields=fields, statuses=(201, 204))

    async def _delete_policy(self) -> None:
        await self._require("DELETE", "policies", "/", self.name, statuses=(204, 404))

    async def _import_definitions(self) -> None:
        answer = await self._http.request("GET", "definitions")
        if answer.status != 200:
            raise Lost(f"the node is not ready: {answer}")
        kept = {name: value for name, value in answer.value.items() if name not in _OF_ANOTHER}
        await self._require("POST", "definitions", fields=kept, statuses=(200, 201, 204))

    async def _require(self, method: str, *path: str, statuses: tuple[int, ...], fields: object = None) -> None:
        answer = await self._http.request(method, *path, fields=fields)
        if answer.status in _LATER:
            raise Lost(f"the request is to be sent again: {answer}")
        self.scene.findings.require(
            answer.status in statuses, "a valid request is not refused", f"{method} {'/'.join(path)}: {answer}"
        )
