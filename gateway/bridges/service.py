"""The bridges of a node: starts and stops them, and answers the management API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gateway.bridges.amqp_connection import AmqpDialer, LocalConnect
from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.shovel_definition import COMPONENT, require_valid_shovel, shovel_of
from gateway.bridges.shovels import Shovels
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.topology import ParameterRecord


class BridgeService:
    """Owns the bridges. ``connect_local`` connects with this broker itself; ``touch`` schedules the end of a turn."""

    def __init__(
        self, broker: Broker, reactor: Any, connect_local: LocalConnect, touch: Callable[[], None]
    ) -> None:  # Any: Twisted's interfaces are not types
        self._shovels = Shovels(broker, AmqpDialer(reactor, connect_local), touch)
        broker.components[COMPONENT] = require_valid_shovel

    def start(self) -> None:
        """Start what the stored parameters define."""
        self._shovels.start()

    def stop(self) -> None:
        """Close all connections. Messages that are not settled return to their queues."""
        self._shovels.stop()

    def local_vhosts(self, record: ParameterRecord) -> Sequence[str]:
        """Return the virtual hosts of this broker that a valid parameter connects to without a user's password."""
        definition = shovel_of(record)
        uris: Sequence[BrokerUri] = (*definition.src_uris, *definition.dest_uris)
        return [uri.vhost or "/" for uri in uris if uri.is_local and not uri.username]

    def shovel_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return the status of each shovel."""
        return list(self._shovels.statuses())

    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Connect a shovel again; return whether it exists."""
        return self._shovels.restart(vhost, name)

    def delete_shovel(self, vhost: str, name: str) -> bool:
        """Remove a shovel with its parameter; return whether it exists."""
        return self._shovels.delete(vhost, name)
