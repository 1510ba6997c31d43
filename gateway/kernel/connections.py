"""Who is connected, whatever the protocol: for listings, alarms and forced ends."""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

#: How often peers are told that time goes by: fine enough for heartbeats of one second, which send two in that time.
TICKS_PER_S: Final = 2


class Peer(Protocol):
    """One connection, as the rest of the gateway sees it."""

    name: str

    @property
    def vhost_name(self) -> str:
        """The virtual host it is in, empty before it is."""
        ...

    @property
    def user_name(self) -> str:
        """Who it is, empty before that is known."""
        ...

    def force_close(self, reason: str) -> None:
        """End it from this side and tell it why."""
        ...

    def weigh_publishing(self) -> None:
        """Look again whether its publishes may go on: an alarm was raised or cleared, or the disk caught up."""
        ...

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        ...

    def fail(self) -> None:
        """End, because an exception came out of a call; called while it is being handled."""
        ...

    def tick(self) -> None:
        """Another part of a second has gone by: mind heartbeats and time limits."""
        ...


class Connections:
    """The peers of one node."""

    def __init__(self) -> None:
        self._peers: dict[Peer, None] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        return iter(tuple(self._peers))

    def add(self, peer: Peer) -> None:
        """Count somebody in."""
        self._peers[peer] = None

    def remove(self, peer: Peer) -> None:
        """Count somebody out; harmless twice."""
        self._peers.pop(peer, None)

    def force_close(self, reason: str, which: Callable[[Peer], bool] = lambda peer: True) -> None:
        """End those connections from this side."""
        for peer in self:
            if which(peer):
                peer.force_close(reason)
