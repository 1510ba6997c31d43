"""Dependencies shared by the parts of a channel: connection, virtual host, outbox and limits."""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

from pamqp.base import Frame

from gateway.kernel.journal.journal import Journal
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway_amqp.content import BASIC, METHOD
from gateway_amqp.holdings import Holdings
from gateway_amqp.identity import PeerIdentity
from gateway_amqp.methods import encode_method

if TYPE_CHECKING:
    from gateway.kernel.messages.origin import Origin


#: The frame of ``basic.ack``: head, class and method, delivery tag, multiple, end.
_ACK_FRAME: Final = Struct(">BHIHHQBB")
_ack_frame: Final[Callable[[int, int, int, int, int, int, bool, int], bytes]] = _ACK_FRAME.pack
_ACK: Final = 80
_ACK_SIZE: Final = 13
_FRAME_END: Final = 0xCE


class Host(Protocol):
    """The connection, as its channels use it."""

    identity: PeerIdentity
    holdings: Holdings

    @property
    def is_resumed(self) -> bool:
        """Whether a node of the cluster goes on with a connection that another leader had."""
        ...

    def publishing(self) -> None:
        """Report that a channel publishes for the first time, or to a new target."""
        ...

    def work_through(self, steps: Iterator[None], then: Callable[[], None]) -> None:
        """Run a long request in slices, then call ``then`` to answer it; later frames wait for that."""
        ...


class Scope:
    """The context of one channel. ``token`` returns unique names."""

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
        """Send a method on this channel."""
        self.outbox.write(encode_method(self.number, method))

    def acknowledge(self, number: int, is_multiple: bool) -> None:
        """Send ``basic.ack`` for publishes. It is frequent, so that it is encoded here."""
        self.outbox.write(_ack_frame(METHOD, self.number, _ACK_SIZE, BASIC, _ACK, number, is_multiple, _FRAME_END))

    def reply_durably(self, method: Frame) -> None:
        """Send a method when everything recorded so far is durable; later output waits behind it."""
        self.outbox.promise(self.journal.pending_lsn)
        self.reply(method)
