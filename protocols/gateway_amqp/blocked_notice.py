"""The notice to a client that its publishes are held back (the extension ``connection.blocked``)."""

from pamqp import commands
from pamqp.base import Frame

from gateway.net.outbox import Outbox
from gateway_amqp.identity import PeerIdentity
from gateway_amqp.methods import encode_method


class BlockedNotice:
    """Sends ``connection.blocked`` and ``connection.unblocked`` to a client with that capability.

    ``is_given``: publishes are held back, and a client with the capability was told so.
    """

    __slots__ = ("_identity", "_outbox", "is_given")

    def __init__(self, identity: PeerIdentity, outbox: Outbox) -> None:
        self.is_given = False
        self._identity = identity
        self._outbox = outbox

    def give(self, reason: str) -> None:
        """Send ``connection.blocked``, once."""
        if not self.is_given:
            self.is_given = True
            self._send(commands.Connection.Blocked(reason))

    def withdraw(self) -> None:
        """Send ``connection.unblocked`` after a notice."""
        if self.is_given:
            self.is_given = False
            self._send(commands.Connection.Unblocked())

    def _send(self, method: Frame) -> None:
        if self._identity.has_capability("connection.blocked"):
            self._outbox.write(encode_method(0, method))
