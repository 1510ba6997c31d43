"""A queue whose limits come from policies, which an operator sets, changes and deletes meanwhile."""

from random import Random
from typing import Any, Final, TypeAlias

from gateway.simulation.history import MessagePlace
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The definition of a policy.
Definition: TypeAlias = dict[str, Any]

#: How late a message may expire, in seconds.
_TOLERANCE_S: Final = 0.5

#: The share of rounds in which the policy stays as it is, also from one life of the node to the next.
_SHARE_OF_STAYS: Final = 0.4

#: The share of policies that come with an import of definitions.
_SHARE_OF_IMPORTS: Final = 0.4


class PoliciedQueue(AmqpProgram):
    """Sets a policy, and sees that the queue keeps it from the answer on, and after the end of the node."""

    kind = "policied"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._rounds = 0
        self._left = random.randint(2, 6)
        self._definition: Definition | None = None  # None while it is not known

    async def work(self) -> bool:
        """Change the policy, and use the queue."""
        self._rounds += 1  # what a lost connection held may return to its queue late
        queue = f"{self.name}.{self._rounds}"
        self.scene.history.add_place(MessagePlace(queue, keeps=False))
        await self.client.declare(queue, durable=True)
        await self.client.confirm()
        while self._left and not self.is_stopping:
            self._left -= 1
            if self._definition is None or self.random.random() > _SHARE_OF_STAYS:
                await self._change(self._chosen())
            assert self._definition is not None
            await self._check(queue, self._definition)
        await self._change({})
        return True

    def _chosen(self) -> Definition:
        limit = self.random.randint(1, 4)
        return self.random.choice(
            (
                {},
                {"max-length": limit},
                {"max-length": limit, "overflow": "reject-publish"},
                {"message-ttl": self.random.choice((0, 50, 200))},
            )
        )

    async def _change(self, definition: Definition) -> None:
        """Set the policy, or delete it if it defines nothing."""
        self._definition = None
        if not definition:
            await self._admin.delete("policies", "/", self.name)
        else:
            policy = {"pattern": f"^{self.name}\\.", "definition": definition, "apply-to": "queues", "priority": 1}
            if self.random.random() < _SHARE_OF_IMPORTS:
                named = {**policy, "vhost": "/", "name": self.name}
                await self._admin.request("POST", "definitions", fields={"policies": [named]})
            else:
                await self._admin.put("policies", "/", self.name, fields=policy)
        self._definition = definition

    async def _check(self, queue: str, definition: Definition) -> None:
        """Publish more than a limit allows; see that the right messages are confirmed, and there."""
        history, findings, limit = self.scene.history, self.scene.findings, definition.get("max-length")
        bodies = [history.publish(self.name, (queue,)) for _ in range((limit or 1) + 2)]
        answers = [self.client.publish("", queue, body.encode(), delivery_mode=2) for body in bodies]
        confirmed = [body for body, answer in zip(bodies, answers, strict=True) if await self.is_confirmed(answer)]
        for body in confirmed:
            history.decided(body, Fate.CONFIRMED)
        most = limit if "overflow" in definition else None
        findings.require(
            confirmed == bodies[:most], "a limit refuses what is above it", f"{queue}: {confirmed} with {definition}"
        )
        wanted = confirmed if limit is None else confirmed[-limit:]
        if "message-ttl" in definition:
            await self.scene.sleep(definition["message-ttl"] / 1000 + _TOLERANCE_S)
            wanted = []
        found = []
        while (message := await self.client.get(queue)) is not None:
            found.append(message.body.decode())
            history.received(queue, self.name, found[-1], is_redelivered=message.is_redelivered)
            self.client.acknowledge(message)
        is_known = "message-ttl" not in definition or not self.scene.world.has_jumped
        findings.require(
            found == wanted or not is_known, "a policy holds", f"{queue}: {found} instead of {wanted} with {definition}"
        )
