"""Dependencies shared by the parts of one connection with an open virtual host."""

from typing import Protocol

from gateway.access import Operation, Permissions, Principal
from gateway.kernel.errors import GatewayError
from gateway.kernel.journal.journal import Journal
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.channel_counters import ChannelCounters
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway_stomp.destinations import Destination, parse, with_wildcards
from gateway_stomp.frames import END, Head
from gateway_stomp.listener_context import StompContext
from gateway_stomp.versions import Version


class Host(Protocol):
    """The connection, as its parts use it. It owns the exclusive queues."""

    @property
    def permissions(self) -> Permissions:
        """The user's current permissions. :raises AccessRefused: when access to the virtual host was revoked."""
        ...

    @property
    def principal(self) -> Principal:
        """The authenticated user."""
        ...

    def publishing(self) -> None:
        """Report the client's first publish: alarms and flow control apply from now on."""
        ...

    def answered(self) -> None:
        """Report that receipts of publishes were written."""
        ...

    def refuse(self, error: GatewayError, head: Head) -> None:
        """Refuse a frame in a later turn; repeat it instead once a permission is known that is missing."""
        ...

    def disconnect(self, receipt: str | None) -> None:
        """Close the connection after all receipts that are due; ``receipt`` is the last one."""
        ...

    def subscription_cancelled(self, subscription: str, reason: str) -> None:
        """Report a subscription whose queue was deleted."""
        ...


class Scope:
    """The context of one connection: its virtual host, user and version. ``session`` is its name in message-ids.

    ``client_id`` is the name of a client of ActiveMQ, empty for others.
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
        self.channel_counters = ChannelCounters()

    def destination(self, written: str) -> Destination:
        """Parse a destination. :raises StompError: when it is invalid."""
        destination = parse(written, self.settings.topic_exchange)
        return with_wildcards(destination) if self.settings.activemq else destination

    def require(self, operation: Operation, kind: str, name: str) -> None:
        """Require a permission; ``kind`` is ``exchange`` or ``queue``. :raises AccessRefused: if it is missing."""
        self.host.permissions.require(operation, kind, name)

    def require_topic(self, operation: Operation, exchange: Exchange, routing_key: str) -> None:
        """Require the topic permission for a routing key, if the exchange is a topic exchange."""
        if exchange.type_name == "topic":
            variables = {"client_id": self.client_id} if self.client_id else {}
            self.host.permissions.require_topic(operation, exchange.name, routing_key, variables)

    def answer(self, receipt: str | None) -> None:
        """Write the receipt of a frame, if it asks for one; it is sent when the frame's changes are durable."""
        if receipt is not None:
            self.outbox.promise(self.journal.pending_lsn)
            self.receipt(receipt)

    def receipt(self, receipt: str) -> None:
        """Send the receipt of a frame, which confirms everything before it, too (1.2, "RECEIPT")."""
        written = receipt if receipt.isalnum() else self.version.escape(receipt)
        self.outbox.write(b"RECEIPT\nreceipt-id:%b\n\n%b" % (written.encode(), END))
