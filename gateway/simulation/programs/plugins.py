"""Clients that depend on plugins which fail: an exchange type with an interceptor, and one that decides on access."""

from random import Random
from typing import Any, Final

from pamqp import commands

from gateway.simulation.clients.amqp import AmqpClient
from gateway.simulation.clients.errors import Lost, RefusedRequest
from gateway.simulation.history import MessagePlace
from gateway.simulation.plugins.access import USERS
from gateway.simulation.plugins.moods import PluginMood
from gateway.simulation.plugins.registry import ACCESS, ROUTING
from gateway.simulation.plugins.routing import EXCHANGE_TYPE, EXCHANGES, RoutedOutcome
from gateway.simulation.programs.amqp import AmqpProgram
from gateway.simulation.publishes import Fate
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology
from gateway.simulation.world.tasks import Promise

#: AMQP's codes for what a user may not do, and for access to a virtual host that is refused.
_REFUSALS: Final = (403, 530)

#: AMQP's codes for an exchange, and for a type, whose plugin is off.
_INERT: Final = (406, 503)

#: Keys of publishes: one is bound, one is not, and for two the interceptor has an answer of its own.
_KEYS: Final = ("bound", "bound", "bound", "unbound", "refuse", "divert")


class PluginRouted(AmqpProgram):
    """Publishes to an exchange whose type and interceptor fail.

    A message that the interceptor could not inspect is refused. One that the type could not route goes to the alternate
    exchange. All others go where the plugin sent them.
    """

    kind = "amqp-plugin"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        plugins = scene.process.plugins
        plugins.use(ROUTING).share = random.choice((0.1, 0.4))
        self._outcomes = plugins.outcomes
        self._exchange = f"{EXCHANGES}{self.name}"
        self._place_of = {
            RoutedOutcome.ROUTED: f"{self._exchange}.queue",
            RoutedOutcome.UNROUTED: f"{self._exchange}.rest",
            RoutedOutcome.DIVERTED: f"{self._exchange}.diverted",
        }
        for place in self._place_of.values():
            scene.history.add_place(MessagePlace(place))
            topology.subscribed.add(place)
        self._left = random.randint(3, 20)
        self._batch = random.choice((1, 3))
        self._returned: set[str] = set()

    async def work(self) -> bool:
        """Declare everything, and publish what is left."""
        self.client.on_return = lambda body: self._returned.add(body.decode())
        await self._declare()
        await self.client.confirm()
        while self._left > 0 and not self.is_stopping:
            self._left -= self._batch
            for body, answer in [self._publish() for _ in range(self._batch)]:
                self._decide(body, await self.is_confirmed(answer))
            if self.random.random() < 0.5:
                await self.pause()
        return True

    async def _declare(self) -> None:
        client, alternate = self.client, f"{self._exchange}.alternate"
        await client.request(commands.Exchange.Declare(exchange=alternate, exchange_type="fanout", durable=True))
        for place in self._place_of.values():
            await client.declare(place, durable=True)
        await client.request(commands.Queue.Bind(queue=self._place_of[RoutedOutcome.UNROUTED], exchange=alternate))
        arguments: Any = {"alternate-exchange": alternate}
        declare = commands.Exchange.Declare(
            exchange=self._exchange, exchange_type=EXCHANGE_TYPE, durable=True, arguments=arguments
        )
        await client.request(declare)
        queue = self._place_of[RoutedOutcome.ROUTED]
        await client.request(commands.Queue.Bind(queue=queue, exchange=self._exchange, routing_key="bound"))

    def _publish(self) -> tuple[str, Promise[bool]]:
        body = self.scene.history.publish(self.name, ())
        self.scene.history.published[body].perhaps.update(self._place_of.values())
        key = self.random.choice(_KEYS)
        return body, self.client.publish(self._exchange, key, body.encode(), is_mandatory=True, delivery_mode=2)

    def _decide(self, body: str, is_confirmed: bool) -> None:
        require, outcome = self.scene.findings.require, self._outcomes.get(body.encode())
        details = f"{body}: {outcome}, {'confirmed' if is_confirmed else 'refused'}"
        is_right = outcome is not None and is_confirmed is (outcome is not RoutedOutcome.REFUSED)
        require(is_right, "a message that a plugin could not inspect is refused, all others are not", details)
        if outcome is RoutedOutcome.REFUSED:
            require(body in self._returned, "a refused mandatory message is returned", details)
            self.scene.history.decided(body, Fate.REFUSED)
        elif outcome is not None:
            published = self.scene.history.published[body]
            published.places, published.perhaps = {self._place_of[outcome]}, set()
            self.scene.history.decided(body, Fate.CONFIRMED)

    def refused(self, error: RefusedRequest) -> None:
        """Give up if the plugin was switched off: its exchange is inert."""
        node = self.scene.process.node
        is_off = node is not None and ROUTING not in node.live_plugins.enabled("/")
        if error.code not in _INERT or not is_off:
            super().refused(error)
        self.is_stopping = True


class PluginUser(AmqpProgram):
    """A user whose permissions a plugin decides: while it fails, the user may do nothing."""

    kind = "amqp-asked"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._plugins = scene.process.plugins
        self._plugins.use(ACCESS)
        self._user = f"{USERS}{number}"
        self.client = AmqpClient(scene, self.name, user=self._user)
        self._queue = f"{self.name}.queue"
        scene.history.add_place(MessagePlace(self._queue))
        topology.subscribed.add(self._queue)
        self._left = random.randint(2, 10)

    async def connect(self) -> None:
        """Connect while the plugin works."""
        self._plugins.mood_of_user[self._user] = PluginMood.WORKS
        await self.client.connect()

    async def work(self) -> bool:
        """Publish with and without permission."""
        await self.client.declare(self._queue, durable=True)
        while self._left and not self.is_stopping:
            self._left -= 1
            mood = self.random.choice((PluginMood.WORKS, *PluginMood))
            self._ask_again(mood)
            await self._publish(is_permitted=mood in (PluginMood.WORKS, PluginMood.IS_SLOW))
        return True

    def _ask_again(self, mood: PluginMood) -> None:
        """Let the broker ask the plugin again, which is in this mood then."""
        reactor = self.scene.process.reactor
        if reactor is None or not self.client.is_connected:
            raise Lost("the node is down")
        self.scene.trace.add(self.name, f"the plugin {mood.name}")
        self._plugins.mood_of_user[self._user] = mood
        reactor.run(self._plugins.access.permissions_changed)

    async def _publish(self, *, is_permitted: bool) -> None:
        history = self.scene.history
        await self.client.open_channel(2)
        await self.client.confirm(2)
        body = history.publish(self.name, (self._queue,) if is_permitted else ())
        try:
            answer = self.client.publish("", self._queue, body.encode(), channel=2, delivery_mode=2)
            is_confirmed = await self.is_confirmed(answer)
        except RefusedRequest as error:
            if is_permitted or error.code not in _REFUSALS:
                raise
            history.decided(body, Fate.REFUSED)
            if not self.client.is_connected:
                raise Lost("the connection ended") from None
            return
        require = self.scene.findings.require
        require(is_permitted, "permissions hold", f"{self.name} published without one")
        require(is_confirmed, "a valid request is not refused", body)
        history.decided(body, Fate.CONFIRMED)
        await self.client.request(commands.Channel.Close(200, "bye", 0, 0), 2)
