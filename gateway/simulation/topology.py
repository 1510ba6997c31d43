"""The exchanges, queues and bindings that the clients of a run share, and where a message goes in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from gateway.simulation.history import MessageHistory, MessagePlace


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


@dataclass(frozen=True, slots=True)
class PublishRoute:
    """Where publishers publish, and the queues that get the message."""

    exchange: str
    key: str
    places: frozenset[str]


@dataclass
class SharedTopology:
    """Owns the plans of the queues. ``exchange`` is a durable topic exchange, to which they are bound.

    ``priorities`` are those of published messages.
    """

    exchange: str = "topics"
    priorities: tuple[int | None, ...] = (None,)
    queues: list[QueuePlan] = field(default_factory=list)
    routes: list[PublishRoute] = field(default_factory=list)

    @classmethod
    def chosen(cls, random: Random, history: MessageHistory) -> "SharedTopology":
        """Choose the topology of a run."""
        topology = cls()
        if random.random() < 0.3:
            topology.priorities = (None, 0, 1, 5)
        words = ("a", "b")
        keys = [f"{one}.{two}" for one in words for two in words]
        patterns = (*keys, "a.*", "*.b", "#")
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
            plan = QueuePlan(f"queue-{number}", is_durable, arguments, bound)
            topology.queues.append(plan)
            heeds_priority = kind == "quorum" or "x-max-priority" in arguments
            is_ordered = not (heeds_priority and len(topology.priorities) > 1)
            history.add_place(MessagePlace(plan.name, keeps=plan.keeps(), is_ordered=is_ordered, survives=is_durable))
        for key in keys:
            places = [plan.name for plan in topology.queues if any(_matches(each, key) for each in plan.keys)]
            topology.routes.append(PublishRoute(topology.exchange, key, frozenset(places)))
        for plan in topology.queues:
            topology.routes.append(PublishRoute("", plan.name, frozenset((plan.name,))))
        return topology


def _matches(pattern: str, key: str) -> bool:
    """Return whether a topic pattern of at most two words matches a key of two words."""
    return pattern == "#" or all(
        wanted in ("*", word) for wanted, word in zip(pattern.split("."), key.split("."), strict=True)
    )
