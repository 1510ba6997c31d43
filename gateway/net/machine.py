"""The interface between a protocol's state machine and the transport side of a connection."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final, Protocol

from gateway.access import CertificateSubject, PermissionUnknown
from gateway.kernel.acting import Actor
from gateway.kernel.broker.connections import PeerLoad
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway.net.turn import TurnParticipant

#: The reason for closing a connection whose credentials have expired.
EXPIRED: Final = "the credentials have expired"


class Phase(Enum):
    """Progress of a connection; time limits depend on it."""

    ENTERING = auto()  # greeting and login have a time limit
    OPEN = auto()
    LEAVING = auto()  # the peer has a limited time to take the last output


class Driver(Protocol):
    """The transport side of one connection, as its machine uses it: a ``PeerProtocol``, or a test double.

    ``is_resumed``: a node of the cluster goes on with a connection that another leader had. ``is_kept``: a node goes on
    with it when this broker ends.
    """

    peer_host: str
    name: str
    is_resumed: bool
    is_kept: bool

    @property
    def certificate(self) -> CertificateSubject | None:
        """The names in the client's verified certificate."""
        ...

    def log(self, event: str, **details: object) -> None:
        """Log an event of this connection."""
        ...

    def hang_up(self) -> None:
        """Send the remaining output, then close the transport."""
        ...

    def opened(self) -> None:
        """Report that the connection has opened its virtual host."""
        ...

    def publishing(self) -> None:
        """Report the client's first publish."""
        ...

    def go_on(self) -> None:
        """Continue with the leftover input; the machine is ready for it."""
        ...


class Machine:
    """State machine of one connection, without I/O. All calls are made on the kernel's thread.

    A protocol's ``Connection`` derives from it: compiled, calls that are made for every packet are then C calls.

    An exception out of a call ends the connection with ``fault``. ``has_published``: the client is held back by alarms
    and by a disk that is behind; set together with one call of ``Driver.publishing``. ``outbox`` holds the output.
    ``is_held``: the turn's budget ended before the input did; call ``receive`` without data in a later turn to
    continue. ``is_busy``: a request takes several turns; ``Driver.go_on`` reports its end, and no call of ``receive``
    is needed before that.
    """

    driver: Driver
    has_published: bool
    is_busy: bool
    is_held: bool
    outbox: Outbox

    @property
    def phase(self) -> Phase:
        """The progress of the connection."""
        raise NotImplementedError

    @property
    def vhost(self) -> VirtualHost | None:
        """The open virtual host, ``None`` before that."""
        raise NotImplementedError

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        raise NotImplementedError

    @property
    def surface(self) -> str:
        """The protocol's name in the audit record."""
        raise NotImplementedError

    @property
    def client(self) -> Actor | None:
        """The client, as the audit record names it."""
        return Actor(self.user_name, self.driver.peer_host, self.surface)

    @property
    def expires_at_s(self) -> float:
        """The Unix time at which the client's credentials expire; 0 is never."""
        return 0.0

    def expire(self) -> None:
        """Close the connection: the client's credentials have expired."""
        self.force_close(EXPIRED)

    @property
    def has_unsettled(self) -> bool:
        """Whether the client holds deliveries that it has not settled."""
        raise NotImplementedError

    def unsettled(self) -> Iterable[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the deliveries that the client has not settled: queue, message and number of the channel."""
        return ()

    @property
    def awaited(self) -> int:
        """The size of the frame or packet of which a part was received, at least; 0 without one."""
        return 0

    def receive(self, data: bytes) -> None:
        """Handle bytes from the peer, which may be cut anywhere. Bytes after the end are ignored."""
        raise NotImplementedError

    def resume(self) -> None:
        """Resume the consumers that waited while the outbox was full."""
        raise NotImplementedError

    def publishing(self) -> None:
        """Report the client's first publish: alarms and flow control apply from now on."""
        if not self.has_published:
            self.has_published = True
            self.driver.publishing()

    def wait_for(self, unknown: PermissionUnknown) -> None:
        """Leave the rest of the input until a permission is known."""
        self.is_busy = self.is_held = True
        unknown.when_known(self.request_ended)

    def request_ended(self) -> None:
        """Continue with the input: the request that took several turns has ended."""
        self.is_busy = False
        self.driver.go_on()

    def lost(self) -> None:
        """Release everything: the transport is closed. Called once and last, whichever side ended the connection."""
        raise NotImplementedError

    def fault(self) -> None:
        """End the connection after an internal error."""
        raise NotImplementedError

    def force_close(self, reason: str) -> None:
        """Close the connection from the server's side; harmless when it is closed."""
        raise NotImplementedError

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return None

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        raise NotImplementedError


class NullParticipant(TurnParticipant):
    """A participant without output (null object)."""

    def wake(self) -> None:
        """Do nothing."""


class ClosedMachine(Machine):
    """The machine of a closed connection (null object).

    It replaces the connection's machine, which breaks the reference cycle between the connection's parts. Memory of
    5,000 clients that leave at once is freed at once, instead of by a garbage collection that stops the broker for 290
    to 800 ms.
    """

    def __init__(self) -> None:
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self.outbox = Outbox(NullParticipant())

    @property
    def phase(self) -> Phase:
        """Return ``Phase.LEAVING``."""
        return Phase.LEAVING

    @property
    def vhost(self) -> VirtualHost | None:
        """Return ``None``."""
        return None

    @property
    def user_name(self) -> str:
        """Return the empty name."""
        return ""

    @property
    def client(self) -> Actor | None:
        """Return ``None``."""
        return None

    @property
    def has_unsettled(self) -> bool:
        """Return false."""
        return False

    def receive(self, data: bytes) -> None:
        """Ignore the input."""

    def resume(self) -> None:
        """Do nothing."""

    def lost(self) -> None:
        """Do nothing."""

    def fault(self) -> None:
        """Do nothing."""

    def force_close(self, reason: str) -> None:
        """Do nothing."""

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return None

    def fail_confirms(self) -> None:
        """Do nothing."""


#: The one instance.
CLOSED_MACHINE: Final = ClosedMachine()
