"""What the resources of the API can reach."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gateway.access import Access, PasswordVerifier
from gateway.kernel.broker.broker import Broker
from gateway.management.http.screening import Screening, screening
from gateway.management.pipeline.side import PipelineSide
from gateway.management.statistics.sampler import Statistics
from gateway.management.web.limits import HttpLimits


class TopicNames(Protocol):
    """How topics and filters of MQTT are written as keys, and read from them."""

    def topic(self, routing_key: str) -> str:
        """Return the topic of a routing key."""
        ...

    def routing_key(self, topic: str) -> str:
        """Return the routing key of a topic."""
        ...


@dataclass(slots=True)
class ApiContext:
    """The broker and the doors to it.

    ``login`` judges who somebody is, ``access_of`` gives the view of one virtual host, ``topics_of`` how it names
    topics. ``addresses`` tells what listens where: listener name to (host, port). ``memory_limit`` and
    ``disk_free_limit`` are in bytes. ``touch`` makes sure that the turn ends. ``started_at_ms`` is wall time.
    ``http`` bounds what clients may hold, ``screening`` keeps foreign pages out. A reload replaces limits and the
    certificate. ``passwords`` hashes them; ``login_counts`` tells of delayed logins, ``collections``
    what garbage collection cost, ``turns`` how long turns of the loop take, ``store_facts`` how large the store's file
    is, whose free space ``compact_store`` gives back, ``inert_plugins`` what plugins a virtual host goes on without.
    """

    broker: Broker
    login: Access
    access_of: Callable[[str], Access]
    statistics: Statistics
    topics_of: Callable[[str], TopicNames]
    pipeline: PipelineSide
    passwords: PasswordVerifier = field(default_factory=PasswordVerifier)
    login_counts: Callable[[], Mapping[str, int]] = dict
    touch: Callable[[], None] = lambda: None
    addresses: Callable[[], Mapping[str, tuple[str, int]]] = dict
    memory_limit: int = 0
    disk_free_limit: int = 0
    data: Path = Path()
    started_at_ms: int = 0
    certificate: Path | None = None
    max_message_size: int = 16 * 2**20
    http: HttpLimits = field(default_factory=HttpLimits)
    screening: Screening = field(default_factory=lambda: screening((), (), 0))
    reactor: Any = None  # Twisted's interfaces are not types
    collections: Callable[[], Mapping[str, Any]] = dict
    turns: Callable[[], Mapping[str, float | int | str]] = dict
    store_facts: Callable[[], Mapping[str, Any]] = dict
    compact_store: Callable[[], bool] = lambda: False
    inert_plugins: Callable[[str], Mapping[str, str]] = lambda vhost: {}
