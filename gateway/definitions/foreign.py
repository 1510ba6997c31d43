"""Queues and exchanges of clients, which definitions do not describe: pruning keeps them.

They are the queues of MQTT sessions, those of durable STOMP subscriptions, those that the broker named, and what an
exchange federation of another broker has declared here. They are deleted with their session, subscription or link.
"""

from collections.abc import Generator
from typing import Final

from gateway.definitions.states import EntityKey
from gateway.kernel.broker.broker import Broker
from gateway.kernel.names import RESERVED_PREFIX

#: Beginnings of names: of queues that the broker named, of STOMP subscriptions, of links from other brokers.
_BEGINNINGS: Final = (RESERVED_PREFIX, "stomp-subscription-", "federation: ")

#: Sessions that are looked at in one step.
_STEP: Final = 50


class ForeignNames:
    """The names of queues and exchanges that clients have declared for themselves."""

    def __init__(self) -> None:
        self._session_queues: set[tuple[str, str]] = set()

    def finding(self, broker: Broker, vhost: str | None) -> Generator[None, None, None]:
        """Look at the MQTT sessions, of all virtual hosts or of one, in steps."""
        for found in [each for name, each in list(broker.vhost_by_name.items()) if vhost in (None, name)]:
            for number, session in enumerate(list(found.sessions)):
                self._session_queues.update((found.name, queue.name) for queue in session.queues())
                if number % _STEP == 0:
                    yield

    def has(self, key: EntityKey) -> bool:
        """Return whether an entity is a queue or an exchange of a client, or a binding from or to one."""
        match key.category:
            case "queues" | "exchanges":
                return self._has(key.vhost, key.category == "queues", key.names[0])
            case "bindings":
                source, kind, destination, *_ = key.names
                return source.startswith(_BEGINNINGS[1:]) or self._has(key.vhost, kind == "queue", destination)
            case _:
                return False

    def _has(self, vhost: str, is_queue: bool, name: str) -> bool:
        return name.startswith(_BEGINNINGS) or (is_queue and (vhost, name) in self._session_queues)
