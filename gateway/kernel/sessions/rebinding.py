"""The move of stored subscriptions to other binding keys or another exchange, without a gap between both."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.clock import drained
from gateway.kernel.queueing.queue import Queue

if TYPE_CHECKING:
    from gateway.kernel.journal.records.sessions import SubscriptionRecord
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.sessions.groups import Groups
    from gateway.kernel.sessions.host import SessionHost
    from gateway.kernel.sessions.session import Session


class Rebinding:
    """Binds subscriptions anew, and removes their former bindings once all of them are bound."""

    def __init__(self, vhost: "SessionHost", groups: "Groups") -> None:
        self._vhost = vhost
        self._groups = groups
        self._former: list[tuple[Session, SubscriptionRecord, SubscriptionRecord, Exchange]] = []

    def bind(
        self, session: "Session", earlier: "SubscriptionRecord", later: "SubscriptionRecord", exchange: "Exchange"
    ) -> None:
        """Replace a subscription by a ``later`` one of the same filter; its former binding stays for now."""
        session.rebind(exchange, later)
        if later.group:
            self._groups.joined(session, later)
        self._former.append((session, earlier, later, exchange))

    def unbinding(self, source: "Exchange | None") -> Iterator[None]:
        """Return the steps that remove the former bindings from their exchange; ``None`` if it was deleted.

        The queue of a group has the binding key in its name: the messages of the former one move to the new one.
        """
        former, self._former = self._former, []
        for session, earlier, later, exchange in drained(former):
            old = self._vhost.queue_by_name.get(session.queue_name(earlier))
            new = self._vhost.queue_by_name.get(session.queue_name(later))
            if old is not None and old is not new:
                if isinstance(old, Queue) and isinstance(new, Queue):
                    yield from _moving(old, new)
                self._groups.left(session, earlier)
            if old is not None and source is not None and (source is not exchange or _is_unneeded(session, earlier)):
                self._vhost.unbind(source, old, earlier.binding_key)
            yield


def _is_unneeded(session: "Session", earlier: "SubscriptionRecord") -> bool:
    """Return whether no present subscription has the binding key of an earlier one."""
    return bool(earlier.group) or not session.subscriptions.has_key(earlier.binding_key, earlier.qos > 0)


def _moving(old: Queue, new: Queue) -> Iterator[None]:
    """Return the steps that move the waiting messages of one queue to another, each in one turn."""
    for _ in range(len(old)):
        entry = old.take()
        if entry is None:
            return
        new.offer(entry.message, was_delayed=True)
        old.consumed(entry)
        yield
