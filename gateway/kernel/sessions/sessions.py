"""The sessions of one virtual host: connected ones, and disconnected ones until they expire."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.deadlines import Deadlines
from gateway.kernel.errors import AccessRefused, NotAllowed
from gateway.kernel.events import Event
from gateway.kernel.journal.records.sessions import HandshakeRecord, SessionRecord, SubscriptionRecord
from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.sessions.groups import Groups
from gateway.kernel.sessions.session import NEVER_S, Holder, Session

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.events import Events
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.sessions.host import SessionHost
    from gateway.kernel.sessions.wills import Wills

#: A session with more subscriptions and unfinished deliveries than this is deleted in slices.
_FEW: Final = 64


class Sessions:
    """Owns the sessions of a virtual host and their expiry.

    ``groups`` are the shared subscription groups. ``max_per_user`` limits the sessions of one user. ``limits`` are the
    arguments of the declared queues: 0 for QoS 0, 1 for QoS 1 and 2. ``connected`` counts the sessions with a client,
    ``most_connected`` is its maximum; ``expired`` counts the sessions that expired. ``dropped`` counts the messages
    that full queues of ended sessions dropped.
    """

    def __init__(
        self, vhost: "SessionHost", journal: "Journal", clock: "Clock", wills: "Wills", events: "Events"
    ) -> None:
        self._vhost = vhost
        self._journal = journal
        self._clock = clock
        self._wills = wills
        self._events = events
        self._session_by_client: dict[str, Session] = {}
        self._subscribers: dict[Session, None] = {}
        self._count_by_user: dict[str, int] = {}
        self._expiries = Deadlines(clock, self._expired)
        self._ending: dict[str, list[Callable[[], None]]] = {}
        self.groups = Groups(vhost, journal)
        self.limits: dict[int, Arguments] = {0: {}, 1: {}}
        self.max_per_user = 50_000
        self.connected = 0
        self.most_connected = 0
        self.expired = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._session_by_client)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._session_by_client.values()))

    def subscribers(self) -> tuple[Session, ...]:
        """Return the sessions that have or had subscriptions. The others have no queues, so statistics skip them."""
        return tuple(self._subscribers)

    def get(self, client_id: str) -> Session | None:
        """Return the session of a client, if it exists."""
        return self._session_by_client.get(client_id)

    def removes_stored(self, client_id: str, is_clean: bool) -> bool:
        """Return whether ``open`` removes something stored: a waiting will, or a session that is not resumed."""
        session = self._session_by_client.get(client_id)
        return client_id in self._wills or (is_clean and session is not None and session.is_durable)

    # Connecting and disconnecting

    def open(
        self, client_id: str, is_clean: bool, expiry_s: int, holder: Holder, user: str = ""
    ) -> tuple[Session, bool]:
        """Return the session of a connecting client, and whether it existed (MQTT 5.0, 3.1.2.4).

        The previous connection of the client is closed. ``is_clean`` deletes an existing session first. ``expiry_s`` is
        the time the session outlives this connection; ``user`` becomes its owner.

        :raises AccessRefused: when it belongs to another user; it is not changed then.
        :raises NotAllowed: when the user has reached its limit of sessions.
        """
        session = self._session_by_client.get(client_id)
        if session is not None and not session.belongs_to(user):
            raise AccessRefused(f"the session of client '{client_id}' belongs to another user")
        if session is not None and session.holder is not None:
            session.holder.displaced()
            session = self._session_by_client.get(client_id)  # a session without expiry ended with its connection
        if session is not None and is_clean:
            self.end(session)
            session = None
        is_present = session is not None
        if session is None:
            self._require_room(user)
            is_durable = expiry_s > 0
            session = self._new_session(client_id, expiry_s, is_durable=is_durable)
            self._session_by_client[client_id] = session
        self._owned_by(session, user)
        self._wills.cancel(client_id)
        self._expiries.drop(client_id)
        session.holder = holder
        self.connected += 1
        self.most_connected = max(self.most_connected, self.connected)
        session.expiry_s = expiry_s
        session.record(ended_at_ms=0)
        self._report("resumed" if is_present else "created", session, user, durable=session.is_durable)
        return session, is_present

    def close(self, session: Session, returning: Iterable[None] = ()) -> None:
        """Start the expiry of a session whose client disconnected; end it if it has none.

        ``returning`` are the steps that requeue what the client did not acknowledge. What exceeds the budget of the
        turn is requeued in slices, and the session is closed after that: its client can resume it then.
        """
        session.holder = None
        self.connected -= 1
        self._ending[session.client_id] = []
        closing = self._closing(session, returning)
        for _ in closing:
            if self._journal.budget.is_spent():
                self._clock.background.add_later(closing)
                return

    def _closing(self, session: Session, returning: Iterable[None]) -> Iterator[None]:
        """Return the steps that close a session, and then make the calls that wait for it."""
        try:
            yield from returning
        finally:  # a session that stays open after a failure could never be resumed
            waiting = self._ending.pop(session.client_id)
            if self._session_by_client.get(session.client_id) is not session:
                self._erase(session)
            elif session.expiry_s:
                session.record(ended_at_ms=self._journal.now_ms)
                self._expire_later(session, session.expiry_s)
            else:
                self.end(session)
            if session.client_id in self._ending:
                self._ending[session.client_id] += waiting
            else:
                _call_all(waiting)

    def end(self, session: Session, *, is_expired: bool = False) -> None:
        """Delete a session with its messages; a waiting will is published now (MQTT-3.1.2-8)."""
        del self._session_by_client[session.client_id]
        is_bare = session.is_bare
        self._subscribers.pop(session, None)
        self._report("deleted", session, session.user, expired=is_expired)
        self._owned_by(session, "")
        self._expiries.drop(session.client_id)
        self._wills.publish_now(session.client_id)
        if not is_bare and session.client_id not in self._ending:  # else it is being closed, and erased after that
            self._erase(session)

    def _erase(self, session: Session) -> None:
        """Delete what belongs to an ended session, in slices if that is much."""
        if session.size <= _FEW:
            for _ in self._erasing(session):
                pass
        else:
            self._ending[session.client_id] = []
            self._clock.background.add(self._erasing_slowly(session))

    def prepare(self, client_id: str, is_clean: bool, user: str, ready: Callable[[], None]) -> bool:
        """Return whether a session can be opened now; if not, call ``ready`` once the earlier one is closed or deleted.

        The connection that holds it is closed. A session with many unacknowledged deliveries is closed in slices. One
        with many subscriptions is deleted in slices, also when a client starts a clean session.
        """
        session = self._session_by_client.get(client_id)
        if session is not None and session.belongs_to(user):
            if session.holder is not None:
                session.holder.displaced()
                session = self._session_by_client.get(client_id)  # a session without expiry ended with its connection
            if session is not None and is_clean:
                self.end(session)
        if client_id not in self._ending:
            return True
        self._ending[client_id].append(ready)
        return False

    def _erasing_slowly(self, session: Session) -> Iterator[None]:
        """Return the steps that delete a large session and then make the calls that wait for it."""
        try:
            yield from self._erasing(session)
        finally:
            _call_all(self._ending.pop(session.client_id, ()))

    def _erasing(self, session: Session) -> Iterator[None]:
        """Return the steps that delete a session: its records, its places in groups, its queues."""
        yield from session.forgetting()
        for subscription in session.subscribed:
            if subscription.group:
                self.groups.left(session, subscription)
                yield
        yield from session.erasing(self._count_dropped)

    def expel(self, session: Session, reason: str) -> None:
        """End a session on request of an operator; a connected client gets the reason."""
        if session.holder is not None:
            session.holder.force_close(reason)
        if self._session_by_client.get(session.client_id) is session:
            self.end(session)

    def ending_all(self) -> Iterator[None]:
        """Return the steps that delete all sessions: the virtual host is deleted."""
        for session in drained(list(self._session_by_client.values())):
            self.end(session)
            yield
        while self._ending:  # other jobs delete these; until then the name of the virtual host is in use
            yield

    def _report(self, what: str, session: Session, user: str, **details: bool) -> None:
        if not self._events.is_awaited("session"):
            return
        found = {"user": user, "expiry_s": session.expiry_s, **details}
        self._events.emit(Event(f"session.{what}", self._vhost.name, session.client_id, found))

    def _new_session(self, client_id: str, expiry_s: int, *, is_durable: bool) -> Session:
        where = (self._vhost, self.groups, self._journal)
        return Session(*where, client_id, expiry_s, self.limits, self._subscribers, is_durable=is_durable)

    def _count_dropped(self, count: int) -> None:
        self.dropped += count

    # Recovery

    def install(self, record: SessionRecord) -> None:
        """Restore a session. It expires counting from its end, or from now if the broker stopped before that."""
        client_id, expiry_s = record.client_id, record.expiry_s
        session = self._new_session(client_id, expiry_s, is_durable=True)
        self._session_by_client[record.client_id] = session
        self._subscribers[session] = None  # its queues outlive its last subscription
        self._owned_by(session, record.user)
        waited_s = 0.0
        if record.ended_at_ms:
            waited_s = (self._clock.wall_ms() - record.ended_at_ms) / 1000
        else:
            session.record(ended_at_ms=self._clock.wall_ms())
        self._expire_later(session, max(0.0, record.expiry_s - waited_s))

    def install_subscription(self, record: SubscriptionRecord) -> None:
        """Restore a subscription; its queue and binding are restored already."""
        session = self._session_by_client[record.client_id]
        session.subscriptions.put(record)
        if record.group:
            self.groups.joined(session, record)

    def install_handshake(self, record: HandshakeRecord) -> None:
        """Restore an unfinished delivery."""
        self._session_by_client[record.client_id].qos2_state.install(record)

    def resume(self) -> None:
        """Reserve exactly-once messages for the clients they were sent to; call after messages are restored.

        Such a message is taken out of the queue of a group, and does not expire in one of the session's own.
        """
        self.groups.resume(self._clock)
        for session in self:
            positions = session.remembered
            if not positions:
                continue
            for own in session.own_queues():
                if not isinstance(own, Queue):  # an operator declared a stream of this name
                    continue
                for entry in own.ready.remove(positions):
                    entry.never_expire()
                    own.ready.put_back(entry)
            for subscription in session.subscribed:
                queue = self._vhost.queue_by_name.get(session.queue_name(subscription)) if subscription.group else None
                if not isinstance(queue, Queue):
                    continue
                for entry in queue.take_these(positions):
                    packet_id, _ = session.qos2_state.remembered.pop(entry.position)
                    session.hold(packet_id, queue, entry)

    # Time

    def _expire_later(self, session: Session, delay_s: float) -> None:
        if session.expiry_s < NEVER_S:
            self._expiries.set(session.client_id, delay_s)

    def release(self, host: "SessionHost") -> None:
        """Release the virtual host, which was deleted; ``host`` is there instead of it."""
        self._vhost = host
        self.groups.release(host)
        self._expiries.release()

    def _expired(self, client_id: str) -> None:
        session = self._session_by_client.get(client_id)
        if session is not None and session.holder is None:
            self.expired += 1
            self.end(session, is_expired=True)

    # Users

    def _require_room(self, user: str) -> None:
        if self._count_by_user.get(user, 0) >= self.max_per_user:
            raise NotAllowed(
                f"user '{user}' has {self.max_per_user} sessions in vhost '{self._vhost.name}': none may be added"
            )

    def _owned_by(self, session: Session, user: str) -> None:
        """Set the user of a session; an empty user when it ends."""
        if session.user == user:
            return
        if session.user:
            count = self._count_by_user.pop(session.user) - 1
            if count:
                self._count_by_user[session.user] = count
        if user:
            self._count_by_user[user] = self._count_by_user.get(user, 0) + 1
        session.user = user


def _call_all(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()
