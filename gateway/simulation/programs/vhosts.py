"""A virtual host of a client's own, with limits, which is deleted and made again."""

from random import Random
from typing import Final

from gateway.simulation.clients.amqp import AmqpClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.programs.amqp import NOT_FOUND
from gateway.simulation.programs.program import CONNECTION_FORCED, Program
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: AMQP's codes for what a limit refuses: a connection or channel, and a queue.
_NOT_ALLOWED: Final = 530
_PRECONDITION_FAILED: Final = 406

#: The most channels of the user in all connections.
_CHANNELS: Final = 3

#: The time in which a deletion ends, and with it the connections, and the time between two looks, in seconds.
_LONGEST_S: Final = 60.0
_LOOK_S: Final = 0.05

_CREATED: Final = 201
_GONE: Final = 404

#: Answers about a virtual host: it is there, made now, being deleted, or not there.
_ANY: Final = (200, 201, 204, 400, 404, 412)


class OwnVhost(Program):
    """Uses a virtual host up to its limits, deletes it under the clients, and makes it again: it must be empty."""

    kind = "vhost"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._admin = Administrator(scene, f"{self.name}-admin")
        self._connections = random.randint(1, 2)
        self._queues = random.randint(1, 4)
        self._rounds = 0
        self._vhost = ""

    async def attempt(self) -> bool:
        """Do everything in a new virtual host: connections that broke may count in the old one for a while."""
        self._rounds += 1
        self._vhost = f"{self.name}.{self._rounds}"
        clients = [AmqpClient(self.scene, f"{self.name}-{index}", user=self.name, vhost=self._vhost) for index in "abc"]
        await self._make()
        try:
            await self._fill_connections(clients)
            await self._fill_channels(clients[: self._connections])
            await self._fill_queues(clients[0])
            await self._delete_under(clients[: self._connections])
            await self._require_empty(clients[0])
        finally:
            for client in clients:
                client.drop()
        return True

    async def finish(self) -> None:
        """Delete what is left, once no other works."""
        for number in range(1, self._rounds + 1):
            await self._delete(f"{self.name}.{number}")

    def refused(self, error: RefusedRequest) -> None:
        """Begin again if a limit of the user counts connections that broke and that the broker has not noticed."""
        if error.code != _NOT_ALLOWED:
            super().refused(error)

    async def _make(self) -> None:
        await self._admin.put("users", self.name, fields={"password": self.name, "tags": ""})
        await self._admin.put("user-limits", self.name, "max-channels", fields={"value": _CHANNELS})
        await self._admin.put("vhosts", self._vhost, fields={})
        await self._permit()
        for limit, value in (("max-connections", self._connections), ("max-queues", self._queues)):
            await self._admin.put("vhost-limits", self._vhost, limit, fields={"value": value})

    async def _permit(self) -> None:
        await self._admin.put(
            "permissions", self._vhost, self.name, fields={"configure": ".*", "write": ".*", "read": ".*"}
        )

    # Limits

    async def _fill_connections(self, clients: list[AmqpClient]) -> None:
        """Connect as many clients as may be, and one more."""
        for client in clients[: self._connections]:
            await client.connect()
        more = clients[self._connections]
        try:
            await more.connect()
        except RefusedRequest as error:
            self._require_code(error, _NOT_ALLOWED)
        else:
            self._require_lost(clients[: self._connections], f"{self._connections + 1} connections")

    async def _fill_channels(self, clients: list[AmqpClient]) -> None:
        """Open as many channels as may be: each connection has one. One more ends its connection."""
        client = clients[0]
        for number in range(2, _CHANNELS + 2 - self._connections):
            await client.open_channel(number)
        if self.random.random() < 0.5:
            return
        try:
            await client.open_channel(_CHANNELS + 2)
        except RefusedRequest as error:
            self._require_code(error, _NOT_ALLOWED)
            await self._reconnect(client)
        else:
            self._require_lost(clients, f"more than {_CHANNELS} channels")

    async def _reconnect(self, client: AmqpClient) -> None:
        """Connect again, once the broker has ended the connection that it has closed."""
        latest_s = self.scene.world.now_s + _LONGEST_S
        while True:
            client.drop()
            await self.scene.sleep(_LOOK_S)
            try:
                await client.connect()
            except RefusedRequest as error:
                if error.code != _NOT_ALLOWED or self.scene.world.now_s > latest_s:
                    raise
            else:
                return

    async def _fill_queues(self, client: AmqpClient) -> None:
        """Declare as many queues as may be, and one more; let each have a message."""
        for number in range(self._queues):
            await client.declare(f"queue-{number}", durable=True)
        try:
            await client.declare("one-more", durable=True)
        except RefusedRequest as error:
            self._require_code(error, _PRECONDITION_FAILED)
            if not client.is_connected:
                raise Lost("the connection ended") from None
            await client.open_channel(1)
        else:
            self._require_lost([client], f"{self._queues + 1} queues")
        await client.confirm()
        for number in range(self._queues):
            await client.publish("", f"queue-{number}", b"in the way", delivery_mode=2)

    def _require_code(self, error: RefusedRequest, code: int) -> None:
        if error.code == CONNECTION_FORCED:
            raise Lost("the node stops")
        self.scene.findings.require(error.code == code, "a limit refuses what is above it", f"{self._vhost}: {error}")

    def _require_lost(self, clients: list[AmqpClient], what: str) -> None:
        """Something above a limit was accepted: a connection that counted must be lost. :raises Lost: if so."""
        is_full = all(client.is_connected for client in clients)
        self.scene.findings.require(not is_full, "a limit refuses what is above it", f"{self._vhost}: {what}")
        raise Lost("a connection ended")

    # The deletion

    async def _delete_under(self, clients: list[AmqpClient]) -> None:
        """Delete the virtual host while clients use it."""
        await self._delete(self._vhost)
        latest_s = self.scene.world.now_s + _LONGEST_S
        while (left := [client for client in clients if client.is_connected]) and self.scene.world.now_s < latest_s:
            await self.scene.sleep(_LOOK_S)
        self.scene.findings.require(not left, "a deleted virtual host's connections end", self._vhost)

    async def _delete(self, vhost: str) -> None:
        """Delete a virtual host; wait until it is gone. A node that ends meanwhile may keep a part of it."""
        latest_s = self.scene.world.now_s + _LONGEST_S
        while True:
            await self._admin.request("DELETE", "vhosts", vhost, statuses=_ANY)
            await self.scene.sleep(_LOOK_S)
            answer = await self._admin.request("GET", "vhosts", vhost, statuses=_ANY)
            if answer.status == _GONE:
                return
            if self.scene.world.now_s > latest_s:
                self.scene.findings.add("a deletion ends", f"{vhost}: {answer}")
                return

    async def _require_empty(self, client: AmqpClient) -> None:
        """Make the virtual host again, and see that nothing of the old one is there, the limits neither."""
        answer = await self._admin.request("PUT", "vhosts", self._vhost, fields={}, statuses=_ANY)
        if answer.status != _CREATED:  # the node ended before the deletion was on disk, or before it answered
            raise Lost("the virtual host was there")
        await self._permit()
        await client.connect()
        try:
            await client.declare("queue-0", passive=True)
        except RefusedRequest as error:
            if error.code != NOT_FOUND:
                raise
            if not client.is_connected:
                raise Lost("the connection ended") from None
            await client.open_channel(1)
        else:
            self.scene.findings.add("a purge or a deletion removes what was there", f"queue-0 in {self._vhost}")
        for number in range(self._queues + 1):
            await client.declare(f"new-{number}", durable=True)
