"""What the parts of one connection share once it is in its virtual host."""

from typing import Protocol

from gateway.access import Operation, Permissions, Principal
from gateway.kernel.journal.journal import Journal
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.channel_counters import Tallies
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway_stomp.destinations import Destination, parse, with_wildcards
from gateway_stomp.frames import END
from gateway_stomp.listener_context import StompContext
from gateway_stomp.versions import Version


class Host(Protocol):
    """The connection, as its parts see it. It owns the exclusive queues."""

    @property
    def permissions(self) -> Permissions:
        """What the client may do now. :raises AccessRefused: when it may do nothing here any more."""
        ...

    @property
    def principal(self) -> Principal:
        """Who it is."""
        ...

    def publishing(self) -> None:
        """The client publishes: it is held back from now on when publishers are."""
        ...

    def awaits_turn(self) -> None:
        """Something was published in this turn whose receipt is due at its end."""
        ...

    def withdraw(self, subscription: str, reason: str) -> None:
        """A subscription ended because its queue is gone."""
        ...


class Scope:
    """One connection's place: who, where, in which version. ``session`` is its name in message-ids.

    ``client_id`` is what a client of ActiveMQ calls itself, empty for others.
    """

    __slots__ = (
        "channel_counters",
        "client_id",
        "host",
        "journal",
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
        settings: StompContext,
        vhost: VirtualHost,
        outbox: Outbox,
        origin: Origin,
        version: Version,
        session: str,
        client_id: str = "",
    ) -> None:
        self.host = host
        self.settings = settings
        self.vhost = vhost
        self.journal: Journal = settings.broker.journal
        self.outbox = outbox
        self.origin = origin
        self.version = version
        self.session = session
        self.client_id = client_id
        self.channel_counters = Tallies()

    def destination(self, written: str) -> Destination:
        """Return the place a client means. :raises StompError: when it means none."""
        destination = parse(written, self.settings.topic_exchange)
        return with_wildcards(destination) if self.settings.activemq else destination

    def require(self, operation: Operation, kind: str, name: str) -> None:
        """Insist on a permission; ``kind`` is ``exchange`` or ``queue``. :raises AccessRefused: if it is missing."""
        self.host.permissions.require(operation, kind, name)

    def require_topic(self, operation: Operation, exchange: Exchange, routing_key: str) -> None:
        """Insist that a routing key may be used, where the exchange is one of topics."""
        if exchange.type_name == "topic":
            variables = {"client_id": self.client_id} if self.client_id else {}
            self.host.permissions.require_topic(operation, exchange.name, routing_key, variables)

    def receipt(self, receipt: str) -> None:
        """Tell the client that a frame was taken, and everything before it (1.2, "RECEIPT")."""
        self.outbox.write(f"RECEIPT\nreceipt-id:{self.version.escape(receipt)}\n\n".encode() + END)
