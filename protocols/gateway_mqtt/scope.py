"""What the parts of one connection share once it is in its virtual host."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from gateway.access import Operation, Permissions
from gateway.kernel.journal.journal import Journal
from gateway.kernel.messages.origin import Origin
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.sessions.session import Session
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_mqtt.codec.properties import Properties
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.traffic.packet_outbox import PacketOutbox
from gateway_mqtt.translation.topics import TopicMapping

#: First levels of topics that no client publishes to: what the broker tells of itself, and what is no topic.
_OF_THE_BROKER: Final = ("$SYS", "$share")

_NO_WILDCARDS: Final = str.maketrans({"*": "%2A", "#": "%23"})


class Host(Protocol):
    """The connection, as its parts see it. ``max_packet_size`` is the largest packet that the client takes."""

    max_packet_size: int

    @property
    def permissions(self) -> Permissions:
        """What the client may do now. :raises AccessRefused: when it may do nothing here any more."""
        ...

    def publishing(self) -> None:
        """The client publishes: it is held back from now on when publishers are."""
        ...

    def awaits_turn(self) -> None:
        """Something was published in this turn whose answer is due at its end."""
        ...

    def explained(self, text: str, write: Callable[[Properties], bytes]) -> bytes:
        """Return the packet that ``write`` makes, with why in words if the client wants and can take them."""
        ...


class Scope:
    """One connection's place: who, where, under which rules. ``version`` is 3, 4 or 5 for 3.1, 3.1.1 and 5.0."""

    __slots__ = (
        "exchange_name",
        "host",
        "journal",
        "mapping",
        "origin",
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
        vhost: VirtualHost,
        session: Session,
        outbox: PacketOutbox,
        origin: Origin,
        version: int,
        mapping: TopicMapping,
    ) -> None:
        self.host = host
        self.settings = settings
        self.vhost = vhost
        self.session = session
        self.journal: Journal = settings.broker.journal
        self.outbox = outbox
        self.origin = origin
        self.version = version
        self.mapping = mapping
        self.exchange_name = settings.exchange

    @property
    def client_id(self) -> str:
        """The client's identifier."""
        return self.session.client_id

    @property
    def exchange(self) -> Exchange:
        """The exchange of all topics. :raises NotFound: when an operator deleted it."""
        return self.vhost.exchange(self.exchange_name)

    def may_publish(self, topic: str, routing_key: str) -> bool:
        """Whether the client may publish to a topic: to none that is the broker's own, whoever it is."""
        if topic.partition("/")[0] in _OF_THE_BROKER or routing_key.partition(".")[0] in _OF_THE_BROKER:
            return False  # RabbitMQ's mapping makes ``$SYS/a`` of ``$SYS.a``
        return self.may_use(Operation.WRITE, routing_key)

    def may_use(self, operation: Operation, routing_key: str) -> bool:
        """Whether the client may publish under a topic (write), or subscribe to one (read)."""
        permissions = self.host.permissions
        if not permissions.may(operation, self.exchange_name):
            return False
        if not permissions.restricts_topics:
            return True
        return permissions.may_use_topic(operation, self.exchange_name, routing_key, self.topic_variables)

    @property
    def topic_variables(self) -> Mapping[str, str]:
        """What ``{client_id}`` and ``{username}`` stand for in patterns of topics: the names as routing keys show them.

        A wildcard among them is no wildcard, or a client that calls itself ``*`` could hear all others.
        """
        names = {"client_id": self.client_id, "username": self.origin.user}
        return {variable: self.mapping.routing_key(name).translate(_NO_WILDCARDS) for variable, name in names.items()}
