"""The context that the parts of one open connection share."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from gateway.access import Operation, Permissions, VhostPermissions
from gateway.kernel.journal.journal import Journal
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.sessions.session import Session
from gateway.net.machine import Driver
from gateway_mqtt.codec.packets import Auth
from gateway_mqtt.codec.properties import Properties
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.topic_rules import VhostTopics
from gateway_mqtt.traffic.packet_outbox import PacketOutbox
from gateway_mqtt.translation.prefixed_topics import topic_variables
from gateway_mqtt.translation.topics import is_reserved

#: The protocol names in listings, as in RabbitMQ.
PROTOCOLS: Final = {3: "MQTT 3-1", 4: "MQTT 3-1-1", 5: "MQTT 5-0"}

#: The channel number in listings, because MQTT has no channels.
_NO_CHANNEL: Final = 0


class Host(Protocol):
    """The connection, as seen by its parts. ``max_packet_size`` is the client's Maximum Packet Size."""

    driver: Driver
    max_packet_size: int

    @property
    def is_resumed(self) -> bool:
        """Whether a node of the cluster goes on with a connection that another leader had."""
        ...

    def publishing(self) -> None:
        """Mark the client as a publisher, so that flow control applies to it."""
        ...

    def with_reason_string(self, text: str, write: Callable[[Properties], bytes]) -> bytes:
        """Return the packet that ``write`` builds, with a reason string if the client accepts it."""
        ...

    def start_task(self, task: Iterator[None], work: int) -> None:
        """Start a long request as a task that yields after each step; ``work`` is the cost of its decoding."""
        ...

    def authenticate_again(self, packet: Auth) -> None:
        """Handle an AUTH of a client that has logged in (4.12.1)."""
        ...

    def close(self) -> None:
        """Close the transport and release everything the client held."""
        ...


class Scope:
    """The context of one connection: session, virtual host, settings, permissions.

    ``version`` is 3 (3.1), 4 (3.1.1) or 5 (5.0). ``access`` is replaced when the client authenticates again.
    """

    __slots__ = (
        "_origin",
        "access",
        "exchange_name",
        "host",
        "journal",
        "mapping",
        "outbox",
        "session",
        "settings",
        "version",
        "vhost",
    )

    def __init__(
        self,
        host: Host,
        settings: MqttContext,
        access: VhostPermissions,
        session: Session,
        outbox: PacketOutbox,
        version: int,
        rules: VhostTopics,
    ) -> None:
        self.host = host
        self.settings = settings
        self.access = access
        self.vhost = access.vhost
        self.session = session
        self.journal: Journal = settings.broker.journal
        self.outbox = outbox
        self._origin: Origin | None = None
        self.version = version
        self.mapping = rules.mapping
        self.exchange_name = rules.exchange

    @property
    def client_id(self) -> str:
        """The client's identifier."""
        return self.session.client_id

    @property
    def user_name(self) -> str:
        """The name of the client's user."""
        return self.access.principal.name

    @property
    def protocol(self) -> str:
        """The protocol and its version in listings."""
        return PROTOCOLS[self.version]

    @property
    def origin(self) -> Origin:
        """The origin of the client's publishes and deliveries; made at the first use."""
        if self._origin is None:
            principal = self.access.principal
            where = self.host.driver.name, _NO_CHANNEL, principal.name
            self._origin = Origin(*where, self.protocol, self.client_id, principal.grant)
        return self._origin

    @property
    def permissions(self) -> Permissions:
        """The client's current permissions. :raises AccessRefused: if it has lost access to the virtual host."""
        return self.access.current

    @property
    def exchange(self) -> Exchange:
        """The exchange of MQTT messages. :raises NotFound: if an operator deleted it."""
        return self.vhost.exchange(self.exchange_name)

    def may_publish(self, topic: str, routing_key: str, permissions: Permissions | None = None) -> bool:
        """Whether the client may publish to a topic; never to a reserved one.

        :raises AccessRefused: if it has lost access to the virtual host; ``PermissionUnknown`` if that is not known.
        """
        if is_reserved(topic, routing_key):
            return False
        return self.may_use(Operation.WRITE, routing_key, permissions or self.permissions)

    def may_use(self, operation: Operation, routing_key: str, permissions: Permissions) -> bool:
        """Whether the client may publish to a topic (write) or subscribe to it (read)."""
        if not permissions.may(operation, self.exchange_name):
            return False
        if not permissions.restricts_topics:
            return True
        return permissions.may_use_topic(operation, self.exchange_name, routing_key, self.topic_variables)

    @property
    def topic_variables(self) -> Mapping[str, str]:
        """The values of ``{client_id}`` and ``{username}`` in topic permissions, in the form of routing keys."""
        return topic_variables(self.mapping, self.client_id, self.user_name)
