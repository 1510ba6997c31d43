"""The exchanges, queues and bindings that the clients of a run share, and where a message goes in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from gateway.simulation.history import MessageHistory, MessagePlace
from gateway.simulation.publishes import PublishRoute
from gateway.simulation.topics import matches

#: The exchange of MQTT's topics.
TOPICS: Final = "amq.topic"

#: The routing keys that clients of all protocols publish with.
KEYS: Final = ("a.a", "a.b", "b.a", "b.b")

#: The content types of published messages; ``None`` is none.
CONTENT_TYPES: Final = (None, "text/plain", "text/html")


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """A queue that the run declares; ``keys`` are its binding keys to the topic exchange."""

    name: str
    is_durable: bool
    arguments: Mapping[str, Any]
    keys: tuple[str, ...]

    def keeps(self) -> bool:
        """Whether nothing but a reader removes a message."""
        return not {"x-message-ttl", "x-max-length", "x-delivery-limit"} & set(self.arguments)


@dataclass
class SharedTopology:
    """Owns the plans of the queues. ``exchange`` is a durable topic exchange, to which they are bound.

    ``qos`` is that of most MQTT clients, ``priorities`` and ``content_types`` are those of published messages.
    ``subscribed`` has the names of queues that clients of MQTT and STOMP have made, which are read at the end too.
    """

    exchange: str = TOPICS
    qos: int = 1
    priorities: tuple[int | None, ...] = (None,)
    content_types: tuple[str | None, ...] = CONTENT_TYPES
    queues: list[QueuePlan] = field(default_factory=list)
    routes: list[PublishRoute] = field(default_factory=list)
    subscribed: set[str] = field(default_factory=set)

    @classmethod
    def chosen(cls, random: Random, history: MessageHistory) -> "SharedTopology":
        """Choose the topology of a run."""
        topology = cls(random.choice((TOPICS, TOPICS, TOPICS, "topics")), random.choice((0, 1, 1, 2, 2)))
        if random.random() < 0.3:
            topology.priorities = (None, 0, 1, 5)
        patterns = (*KEYS, "a.*", "*.b", "#")
        for number in range(random.randint(1, 4)):
            arguments: dict[str, Any] = {}
            kind = random.choice(("classic", "classic", "quorum"))
            is_durable = kind == "quorum" or random.random() < 0.8
            if kind == "quorum":
                arguments["x-queue-type"] = "quorum"
            elif random.random() < 0.2:
                arguments["x-max-priority"] = 3
            if random.random() < 0.2:
                arguments["x-single-active-consumer"] = True
            bound = tuple(sorted(random.sample(patterns, random.randint(1, 3))))
            topology.queues.append(QueuePlan(f"queue-{number}", is_durable, arguments, bound))
        topology.complete(history)
        return topology

    def complete(self, history: MessageHistory) -> None:
        """Add the routes to the queues, and their places in the history; called once."""
        for plan in self.queues:
            arguments = plan.arguments
            heeds_priority = arguments.get("x-queue-type") == "quorum" or "x-max-priority" in arguments
            is_ordered = not (heeds_priority and len(self.priorities) > 1)
            history.add_place(
                MessagePlace(plan.name, keeps=plan.keeps(), is_ordered=is_ordered, survives=plan.is_durable)
            )
        self.routes += [self.route(key, self.exchange) for key in KEYS]
        for plan in self.queues:
            self.routes.append(PublishRoute("", plan.name, frozenset((plan.name,))))

    def route(self, key: str, exchange: str = TOPICS) -> PublishRoute:
        """Return the route of a key to an exchange, by default that of MQTT's topics."""
        bound = self.queues if exchange == self.exchange else []
        places = frozenset(plan.name for plan in bound if any(matches(each, key) for each in plan.keys))
        return PublishRoute(exchange, key, places, key if exchange == TOPICS else None)
