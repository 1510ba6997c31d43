"""What the machine of a connection and whoever moves its bytes need of each other, whatever the protocol."""

from enum import Enum, auto
from typing import Final, Protocol

from gateway.access import CertificateSubject
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.outbox import Outbox
from gateway.net.turn import Speaker


class Phase(Enum):
    """How far a connection got, as far as the clockwork cares."""

    ENTERING = auto()  # greeting and login have to end in time
    OPEN = auto()
    LEAVING = auto()  # the peer has to take what it was sent last in time


class Driver(Protocol):
    """The transport side of one connection, as its machine sees it: a ``PeerProtocol``, or a test."""

    peer_host: str
    name: str

    @property
    def certificate(self) -> CertificateSubject | None:
        """The names in the client's verified certificate."""
        ...

    def log(self, event: str, **details: object) -> None:
        """Write a line about this connection."""
        ...

    def hang_up(self) -> None:
        """Send what is left, then close the transport."""
        ...

    def opened(self) -> None:
        """The connection is in its virtual host."""
        ...

    def publishing(self) -> None:
        """The client publishes for the first time."""
        ...

    def go_on(self) -> None:
        """The machine is ready for the input that it left over."""
        ...


class Machine:
    """One client's conversation without I/O, as its ``PeerProtocol`` sees it. All calls come on the kernel's thread.

    A protocol's ``Connection`` derives from it: compiled, calls that come with every packet are then calls of C.

    What a call raises ends the connection with ``fault``. ``has_published`` says that alarms and the disk's backlog
    concern this client; whoever sets it calls ``Driver.publishing`` once. ``outbox`` has what is to be sent.
    ``is_held`` says that the turn's budget ended before the input did: ``receive`` nothing in a later turn to go on.
    While it ``is_busy`` with a request that takes several turns there is no need to: ``Driver.go_on`` tells its end.
    """

    has_published: bool
    is_busy: bool
    is_held: bool
    outbox: Outbox

    @property
    def phase(self) -> Phase:
        """How far the connection got."""
        raise NotImplementedError

    @property
    def vhost(self) -> VirtualHost | None:
        """The virtual host it is in, once it is."""
        raise NotImplementedError

    @property
    def user_name(self) -> str:
        """Who is connected, empty before that is known."""
        raise NotImplementedError

    @property
    def has_unsettled(self) -> bool:
        """Whether it holds deliveries, which it will acknowledge."""
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """Feed bytes from the peer, cut anywhere. Those after the end are ignored."""
        raise NotImplementedError

    def end_turn(self) -> None:
        """Let into the outbox what is due only now that the journal was flushed: confirms."""
        raise NotImplementedError

    def resume(self) -> None:
        """Serve the consumers that waited because the way to the peer was full."""
        raise NotImplementedError

    def lost(self) -> None:
        """The transport is gone: release everything. Called once, last, whoever ended the connection."""
        raise NotImplementedError

    def fault(self) -> None:
        """End the connection because something of ours broke."""
        raise NotImplementedError

    def force_close(self, reason: str) -> None:
        """End the connection from this side; harmless when it has ended."""
        raise NotImplementedError

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        raise NotImplementedError


class Mute(Speaker):
    """Has nothing to say."""

    def wake(self) -> None:
        """Stay as it is."""

    def defer_confirms(self) -> None:
        """Owe nothing."""


class Gone(Machine):
    """The machine of a connection that is over: asks for nothing, holds nothing.

    It takes the other's place so that a connection, whose parts know each other, is no cycle: what 5,000 who leave at
    once leave behind is freed at once, not by a collection that stops everybody (290 to 800 ms).
    """

    def __init__(self) -> None:
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self.outbox = Outbox(Mute())

    @property
    def phase(self) -> Phase:
        """The end."""
        return Phase.LEAVING

    @property
    def vhost(self) -> VirtualHost | None:
        """None."""
        return None

    @property
    def user_name(self) -> str:
        """Nobody."""
        return ""

    @property
    def has_unsettled(self) -> bool:
        """Never."""
        return False

    def receive(self, data: bytes) -> None:
        """Hear nothing."""

    def end_turn(self) -> None:
        """Say nothing."""

    def resume(self) -> None:
        """Serve nobody."""

    def lost(self) -> None:
        """Be gone already."""

    def fault(self) -> None:
        """End no more."""

    def force_close(self, reason: str) -> None:
        """End no more."""

    def fail_confirms(self) -> None:
        """Answer nothing."""


#: One for all of them.
GONE: Final = Gone()
