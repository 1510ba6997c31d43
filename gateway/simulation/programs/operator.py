"""An operator who changes policies and definitions while clients work."""

from random import Random
from typing import Any, Final

from gateway.simulation.plugins.routing import EXCHANGE_TYPE
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.program import Program
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: Parts of the definitions that other programs change meanwhile.
_OF_OTHERS: Final = ("users", "permissions", "topic_permissions", "policies")

#: Parts whose objects belong to a virtual host: other programs delete theirs meanwhile, and change its limits.
_IN_VHOSTS: Final = ("queues", "exchanges", "bindings", "parameters")

#: Policies that change nothing for the clients' messages, but what the queues do with each of them.
_POLICIES: Final[tuple[dict[str, Any], ...]] = (
    {"message-ttl": 30 * 86_400_000},
    {"max-length": 100_000, "overflow": "reject-publish"},
    {"max-length-bytes": 2**30},
    {"dead-letter-exchange": "amq.fanout", "expires": 30 * 86_400_000},
)


class Operator(Program):
    """Sets and deletes a policy for the shared queues, and imports the broker's own definitions again.

    An import restores what was there when they were read: the limits of a virtual host, and a queue that has expired.
    So those that other programs change are left out.
    """

    kind = "operator"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._admin = Administrator(scene, self.name)
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
        await self._admin.put("policies", "/", self.name, fields=fields)

    async def _delete_policy(self) -> None:
        await self._admin.delete("policies", "/", self.name)

    async def _import_definitions(self) -> None:
        answer = await self._admin.request("GET", "definitions")
        kept = {name: value for name, value in answer.value.items() if name not in _OF_OTHERS}
        kept["vhosts"] = [each for each in kept["vhosts"] if each["name"] == "/"]
        for name in _IN_VHOSTS:
            kept[name] = [each for each in kept.get(name, ()) if each["vhost"] == "/"]
        kept["queues"] = [each for each in kept["queues"] if "x-expires" not in each["arguments"]]
        # the plugin of this type may be switched off meanwhile; then nothing of it is imported
        kept["exchanges"] = [each for each in kept["exchanges"] if each["type"] != EXCHANGE_TYPE]
        await self._admin.request("POST", "definitions", fields=kept)
