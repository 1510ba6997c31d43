"""Whether the leader of present clients can be reached, asked while the cluster tells this node of no leader.

A node that has lost the engine alone goes on passing bytes to a leader that works. One that is cut off from the leader
too would wait for it as long as TCP does, which is many minutes.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from twisted.internet.error import ConnectionRefusedError, NoRouteError, TCPTimedOutError, TimeoutError
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.python.failure import Failure

from gateway.net.forwarding.routing import Leader

#: Time limit of one attempt, in seconds.
_REACH_S: Final = 3.0

#: What shows that a host or its process is gone. Anything else, such as too many open files, says nothing of it.
_GONE: Final = (ConnectionRefusedError, NoRouteError, TCPTimedOutError, TimeoutError)


class Reaching:
    """Tries to reach leaders; calls ``unreachable`` with one that is gone. Owns the attempts, one for each leader."""

    def __init__(self, reactor: Any, unreachable: Callable[[Leader], None]) -> None:  # Any: as in Twisted
        self._reactor = reactor
        self._unreachable = unreachable
        self._tried: set[Leader] = set()

    def look(self, leaders: Iterable[Leader]) -> None:
        """Try to reach these leaders, unless an attempt is on its way."""
        for leader in set(leaders) - self._tried:
            self._tried.add(leader)
            self._reactor.connectTCP(*leader.address, _Attempt(partial(self._ended, leader)), _REACH_S)

    def _ended(self, leader: Leader, *, is_gone: bool) -> None:
        self._tried.discard(leader)
        if is_gone:
            self._unreachable(leader)


class _Attempt(ClientFactory):
    """One attempt, whose connection is closed at once."""

    noisy = False

    def __init__(self, ended: Callable[..., None]) -> None:
        self._ended = ended

    def buildProtocol(self, addr: IAddress | None) -> "_Reached":
        """Return the protocol that closes the connection."""
        return _Reached()

    def clientConnectionFailed(self, connector: Any, reason: Failure) -> None:
        """Report whether that shows that the leader is gone."""
        self._ended(is_gone=isinstance(reason.value, _GONE))

    def clientConnectionLost(self, connector: Any, reason: Failure) -> None:  # noqa: N802 - Twisted's name
        """Report that the leader was reached."""
        self._ended(is_gone=False)


class _Reached(Protocol):
    """A connection that is of no more interest."""

    def connectionMade(self) -> None:
        """Close it."""
        transport: Any = self.transport
        transport.abortConnection()
