"""The interface of what a follower remembers of a client's connection, so that another leader can go on with it.

A protocol implements it without I/O; ``gateway/net/forwarding`` moves the bytes. Until a leader is lost, everything
passes unchanged, in whole units of the protocol.
"""

from typing import Protocol

from gateway.net.forwarding.relayed_bytes import RelayedBytes
from gateway.net.forwarding.routing import ClientRoute


class Resumable(Protocol):
    """One connection of a client, between the client and one leader after the other.

    ``waiting`` has what the two are to get: take it after each call.
    ``is_full``: the client is not read, because too much waits for the leader's answers. ``is_restoring``: a new leader
    is being told what the former one knew. ``has_leader_ended``: the leader has announced its end in order; it is to
    be left. ``is_over``: the client was told that its connection ends. ``is_closing``: the client has asked for that.
    ``awaits_client``: it then closes the connection itself. ``heartbeat_s`` is the interval in which client and broker
    expect to hear of each other; 0 if they do not. ``awaits_answer``: the client has sent a request, other than a
    publish, whose answer has not come. ``route`` is asked about the client's virtual host, if there are several cells;
    ``is_rerouted``: the present leader is to be left for the one that the route leads to now.
    """

    awaits_client: bool
    waiting: RelayedBytes
    route: ClientRoute | None
    is_rerouted: bool

    @property
    def is_full(self) -> bool:
        """See the class."""
        ...

    @property
    def is_restoring(self) -> bool:
        """See the class."""
        ...

    @property
    def has_leader_ended(self) -> bool:
        """See the class."""
        ...

    @property
    def is_closing(self) -> bool:
        """See the class."""
        ...

    @property
    def is_over(self) -> bool:
        """See the class."""
        ...

    @property
    def heartbeat_s(self) -> int:
        """See the class."""
        ...

    @property
    def awaits_answer(self) -> bool:
        """See the class."""
        ...

    def receive_from_client(self, data: bytes) -> None:
        """Handle bytes of the client."""
        ...

    def receive_from_leader(self, data: bytes) -> None:
        """Handle bytes of the leader."""
        ...

    def leader_lost(self) -> bool:
        """Prepare for another leader; return whether one could go on. If not, the client's connection ends."""
        ...

    def leader_found(self) -> None:
        """Begin to tell another leader what it must know; also the first one of the client's virtual host."""
        ...

    def give_up(self, reason: str) -> None:
        """Tell the client that its connection ends."""
        ...

    def beat(self) -> None:
        """Send the client, and a leader that waits for it, a sign of life."""
        ...

    def tell_held(self) -> None:
        """Tell a client that publishes that its messages wait; harmless if it was told, or cannot be."""
        ...
