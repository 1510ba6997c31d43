"""What the parts of a channel share: where they are, what its user may do, and how they answer."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from pamqp.base import Frame

from gateway.access import Permissions
from gateway.kernel.journal.journal import Journal
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway_amqp.holdings import Holdings
from gateway_amqp.methods import encode_method

if TYPE_CHECKING:
    from gateway.access import Principal
    from gateway.kernel.messages.origin import Origin


class Host(Protocol):
    """The connection, as its channels see it."""

    @property
    def permissions(self) -> Permissions:
        """What the user may do now."""
        ...

    @property
    def principal(self) -> "Principal":
        """Who is connected."""
        ...

    @property
    def holdings(self) -> Holdings:
        """What the connection holds of unfinished bodies and open transactions."""
        ...

    def publishing(self) -> None:
        """Hear that the channel begins to publish, or publishes to somewhere new."""
        ...

    def work_through(self, steps: Iterator[None], then: Callable[[], None]) -> None:
        """Do a long request in slices, and ``then`` answer it; frames that follow wait for that."""
        ...

    def has_capability(self, name: str) -> bool:
        """Whether the client announced a capability."""
        ...


class Scope:
    """One channel's surroundings. ``token`` makes names nobody else has."""

    __slots__ = ("host", "journal", "max_message_size", "number", "origin", "outbox", "token", "vhost")

    def __init__(
        self,
        number: int,
        host: Host,
        vhost: VirtualHost,
        outbox: Outbox,
        journal: Journal,
        origin: "Origin",
        token: Callable[[], str],
        max_message_size: int,
    ) -> None:
        self.number = number
        self.host = host
        self.vhost = vhost
        self.outbox = outbox
        self.journal = journal
        self.origin = origin
        self.token = token
        self.max_message_size = max_message_size

    def reply(self, method: Frame) -> None:
        """Answer on this channel."""
        self.outbox.write(encode_method(self.number, method))

    def reply_durably(self, method: Frame) -> None:
        """Answer once everything recorded so far is on disk; what the connection says later waits behind it."""
        self.outbox.promise(self.journal.pending_lsn)
        self.reply(method)
