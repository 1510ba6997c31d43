"""The last confirms of a broker that stops: for all that it has read, before it closes the connections.

A client publishes again what was not confirmed, so each confirm that does not go is a message that is there twice.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.kernel.alarms import Resource
from gateway.kernel.broker.broker import Broker

#: How long connections stay open for their last confirms, in seconds.
_LONGEST_S: Final = 2.0


class LastConfirms:
    """Stops the reading of all clients, and waits until the store has what was read; not if it cannot write.

    ``end_turn`` gives the store what the present turn has changed.
    """

    def __init__(
        self,
        broker: Broker,
        reactor: Any,  # Any: Twisted's interfaces are not types
        end_turn: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._reactor = reactor
        self._end_turn = end_turn
        self._done: Callable[[], None] | None = None

    def wait(self, done: Callable[[], None]) -> None:
        """Call ``done`` when the confirms have gone, or after a while.

        If the store has failed, it is called in the same turn: a node of a cluster that gets refusals together with the
        end of the leader publishes again what was refused.
        """
        journal = self._broker.journal
        if journal.has_failed or Resource.STORE in self._broker.alarms.standing:
            done()
            return
        self._end_turn()
        lsn = journal.pending_lsn
        if lsn <= journal.watermark:
            done()
            return
        self._done = done
        for peer in self._broker.connections:
            peer.hold_back()
        # not from inside the report, in which further confirms may follow
        journal.when_durable(lsn, partial(self._reactor.callLater, 0, self.end))
        self._reactor.callLater(_LONGEST_S, self.end)

    def end(self) -> None:
        """Wait no longer, if it does."""
        done, self._done = self._done, None
        if done is not None:
            done()
