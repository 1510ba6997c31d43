"""The bridges of a node, and the access of their connections to the node itself."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.protocol import Factory

from gateway.access import Access, Credentials, Permissions, Principal
from gateway.bridges.amqp_connection import LOCAL_USER
from gateway.bridges.mqtt_ends import TopicMap
from gateway.bridges.service import BridgeService
from gateway.kernel.broker.broker import Broker
from gateway.net.inside import connect_inside
from gateway.node.protocols.amqp import AmqpProtocol

#: A bridge forwards messages of all users, with their ``user_id``.
_PRINCIPAL: Final = Principal(LOCAL_USER, frozenset({"impersonator"}))


class _BridgeLogin:
    """Authenticates the bridges of this process. No listener uses it, so there is no password."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        """Accept the bridge."""
        answer(_PRINCIPAL if credentials.username == LOCAL_USER else None)


class _AllPermissions:
    """Authorizes the bridges of this process; who may set up one for a virtual host was checked before."""

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return all permissions."""
        return Permissions(principal.name, vhost, ".*", ".*", ".*")


def node_bridges(
    broker: Broker,
    amqp: AmqpProtocol,
    topics_of: Callable[[str], TopicMap],
    mqtt_exchange_of: Callable[[str], str],
    reactor: Any,  # Any: Twisted's interfaces are not types
    touch: Callable[[], None],
) -> BridgeService:
    """Return the bridges of a node; they log in to it with a user's password, or as the bridge itself."""
    access = Access((_BridgeLogin(),), (_AllPermissions(),))

    def connect_local(client: Factory, is_user: bool) -> None:
        connect_inside(reactor, amqp.factory(is_tls=False) if is_user else amqp.inside_factory(access), client)

    return BridgeService(broker, reactor, connect_local, topics_of, mqtt_exchange_of, touch)
