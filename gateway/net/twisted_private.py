"""Twisted's private names that the broker uses: this is the only module that spells them.

Each was read in Twisted 24.7 and in the newest version; ``tests/net/test_twisted_private.py`` fails when a version has
renamed one.
"""

from select import EPOLLIN
from typing import Any, Final, Protocol

from twisted.internet import epollreactor, tcp

#: What ``StandardReactor`` and ``has_unsent`` rely on, by the class that has it.
REACTOR_NAMES: Final = (
    "_disconnectSelectable", "_doReadOrWrite", "_moveCallLaterSooner", "_newTimedCalls", "_pendingTimedCalls",
    "_poller", "_reads", "_selectables",
)  # fmt: skip
TRANSPORT_NAMES: Final = ("dataBuffer", "_tempDataBuffer")

#: What ``StandardServer`` relies on besides.
SERVER_NAMES: Final = ("_closeWriteConnection", "_writeDisconnected", "_writeDisconnecting")


class Poller(Protocol):
    """The part of ``select.epoll`` that the reactor calls."""

    def register(self, fd: int, eventmask: int) -> None:
        """Watch a descriptor."""
        ...


class StandardReactor(epollreactor.EPollReactor):
    """Twisted's epoll reactor, with public names for what a poll loop of its own needs."""

    def use_poller(self, poller: Poller) -> None:
        """Replace the epoll object; the reactor's own waker is registered with the new one."""
        stock, self._poller = self._poller, poller
        stock.close()
        for descriptor in self._reads:
            poller.register(descriptor, EPOLLIN)

    @property
    def timed_calls(self) -> list[Any]:
        """The delayed calls, as a heap; the list object stays the same while a poll loop runs."""
        calls: list[Any] = self._pendingTimedCalls
        return calls

    @property
    def new_timed_calls(self) -> list[Any]:
        """The delayed calls that are not in the heap yet; the list object stays the same while a poll loop runs."""
        calls: list[Any] = self._newTimedCalls
        return calls

    def selectable(self, descriptor: int) -> Any:
        """Return the object registered for a descriptor, or ``None``."""
        return self._selectables.get(descriptor)

    def serve(self, selectable: Any, descriptor: int, event: int) -> None:
        """Read from or write to a selectable, as epoll's event says."""
        self._doReadOrWrite(selectable, descriptor, event)  # type: ignore[no-untyped-call]  # Twisted's

    def call_moved_sooner(self) -> None:
        """Called after a delayed call was moved to an earlier time."""

    def selectable_ended(self, selectable: Any, *reason: Any) -> None:
        """Called when a selectable failed or was closed by its peer; calls ``notify_end`` now or later."""
        self.notify_end(selectable, *reason)

    def notify_end(self, selectable: Any, *reason: Any) -> None:
        """Notify a selectable that its connection is lost."""
        super()._disconnectSelectable(selectable, *reason)  # type: ignore[no-untyped-call]  # Twisted's

    def _disconnectSelectable(self, selectable: Any, *reason: Any) -> None:  # noqa: N802 - Twisted's name
        self.selectable_ended(selectable, *reason)

    def _moveCallLaterSooner(self, delayed_call: Any) -> None:  # noqa: N802 - Twisted's name
        super()._moveCallLaterSooner(delayed_call)
        self.call_moved_sooner()


class StandardServer(tcp.Server):
    """Twisted's transport of an accepted connection."""

    def close_output(self) -> None:
        """Close the output side now; nothing may wait to be written. The peer is still read from."""
        self._writeDisconnecting = self._writeDisconnected = True
        self._closeWriteConnection()


def has_unsent(transport: Any) -> bool:
    """Whether a transport still holds bytes that it was asked to write."""
    return bool(transport.dataBuffer or transport._tempDataBuffer)
