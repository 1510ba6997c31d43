"""The store's reports, as effects on confirms, alarms and events."""

from collections.abc import Callable

from gateway.kernel.alarms import Alarms, Resource
from gateway.kernel.broker.connections import Connections
from gateway.kernel.events import Event, Events
from gateway.kernel.journal.changes import Lsn, SetAside
from gateway.kernel.journal.journal import Journal


class StoreReports:
    """The listener of the store of one node. ``on_failure`` is called with the reason when the node must stop.

    ``set_aside`` lists the records of the store that cannot be used.
    """

    def __init__(self, journal: Journal, alarms: Alarms, connections: Connections, events: Events) -> None:
        self.set_aside: list[SetAside] = []
        self.on_failure: Callable[[str], None] = lambda reason: None
        self._journal = journal
        self._alarms = alarms
        self._connections = connections
        self._events = events

    def on_durable(self, watermark: Lsn) -> None:
        """Release confirms: everything up to ``watermark`` survives a crash."""
        self._journal.on_durable(watermark)

    def on_refused(self, reason: str) -> None:
        """Fail waiting confirms: the store left out a change that it cannot write."""
        for peer in self._connections:
            peer.fail_confirms()
        self._events.emit(Event("store.refused", details={"reason": reason}))

    def on_set_aside(self, aside: SetAside) -> None:
        """Report a record of the store that cannot be used and was set aside."""
        self.set_aside.append(aside)
        key = [str(part) for part in aside.key]
        details = {"kind": aside.kind, "key": key, "reason": aside.reason}
        self._events.emit(Event("store.set_aside", details=details))

    def on_stalled(self, reason: str) -> None:
        """Block publishers: the store cannot write for now, and confirms wait."""
        self._alarms.set(Resource.STORE, True, reason)
        self._events.emit(Event("store.stalled", details={"reason": reason}))

    def on_resumed(self) -> None:
        """Clear the alarm: the store can write again."""
        self._alarms.set(Resource.STORE, False)
        self._events.emit(Event("store.resumed"))

    def on_failed(self, reason: str) -> None:
        """Fail all confirms and stop the node: the store can no longer write."""
        self._journal.has_failed = True
        for peer in self._connections:
            peer.fail_confirms()
        self._alarms.set(Resource.STORE, True, reason)
        self._events.emit(Event("store.failed", details={"reason": reason}))
        self.on_failure(reason)
