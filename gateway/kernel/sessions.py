"""The sessions of one virtual host: who is there, who left and may come back, and until when."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.errors import AccessRefused
from gateway.kernel.groups import Groups
from gateway.kernel.message import Arguments
from gateway.kernel.records import HandshakeRecord, SessionRecord, SubscriptionRecord
from gateway.kernel.session import NEVER_S, Holder, Session

if TYPE_CHECKING:
    from gateway.kernel.journal import Journal
    from gateway.kernel.ports import Clock, Timer
    from gateway.kernel.vhost import VirtualHost
    from gateway.kernel.wills import Wills


class Sessions:
    """Owns the sessions of a virtual host and the clockwork of their ends.

    ``groups`` are those that share messages. ``limits`` are the arguments of the queues it declares, by level: 0 for
    QoS 0, 1 for those above. ``connected`` have a client now, ``most_connected`` had one at the same time; ``expired``
    ended because theirs stayed away. ``dropped`` are messages that there was no room for in the queues of sessions that
    ended.
    """

    def __init__(self, vhost: "VirtualHost", journal: "Journal", clock: "Clock", wills: "Wills") -> None:
        self._vhost = vhost
        self._journal = journal
        self._clock = clock
        self._wills = wills
        self._session_by_client: dict[str, Session] = {}
        self._timers: dict[str, Timer] = {}
        self.groups = Groups(vhost, journal)
        self.limits: dict[int, Arguments] = {0: {}, 1: {}}
        self.connected = 0
        self.most_connected = 0
        self.expired = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._session_by_client)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._session_by_client.values()))

    def get(self, client_id: str) -> Session | None:
        """Return the session of a client, if it has one."""
        return self._session_by_client.get(client_id)

    # Connections come and go

    def open(
        self, client_id: str, is_clean: bool, expiry_s: int, holder: Holder, user: str = ""
    ) -> tuple[Session, bool]:
        """Return the session of a client that connected, and whether it was there before (MQTT 5.0, 3.1.2.4).

        The connection that held it is displaced. ``is_clean`` starts over. ``expiry_s`` is how long it outlives this
        connection; it belongs to ``user`` from now on.

        :raises AccessRefused: when it belongs to another user; nothing happens to it then.
        """
        session = self._session_by_client.get(client_id)
        if session is not None and not session.belongs_to(user):
            raise AccessRefused(f"the session of client '{client_id}' belongs to another user")
        if session is not None and session.holder is not None:
            session.holder.displaced()
            session = self._session_by_client.get(client_id)  # one without expiry ended with its connection
        if session is not None and is_clean:
            self.end(session)
            session = None
        is_present = session is not None
        if session is None:
            is_durable = expiry_s > 0
            session = Session(self._vhost, self._journal, client_id, expiry_s, self.limits, is_durable=is_durable)
            self._session_by_client[client_id] = session
        session.user = user
        self._wills.cancel(client_id)
        self._cancel_expiry(client_id)
        session.holder = holder
        self.connected += 1
        self.most_connected = max(self.most_connected, self.connected)
        session.expiry_s = expiry_s
        session.record(ended_at_ms=0)
        return session, is_present

    def close(self, session: Session) -> None:
        """Let a session wait for its client, for as long as it said; one that was not to wait ends."""
        session.holder = None
        self.connected -= 1
        if session.expiry_s == 0:
            self.end(session)
            return
        session.record(ended_at_ms=self._journal.now_ms)
        self._expire_later(session, session.expiry_s)

    def end(self, session: Session) -> None:
        """Forget a session with everything that waits for it; a will that waits is due now (MQTT-3.1.2-8)."""
        del self._session_by_client[session.client_id]
        self._cancel_expiry(session.client_id)
        self._wills.hurry(session.client_id)
        for subscription in session.subscriptions:
            if subscription.group:
                self.groups.left(session, subscription)
        session.erase()

    def expel(self, session: Session, reason: str) -> None:
        """End a session for its operator; a client that is connected hears the reason."""
        if session.holder is not None:
            session.holder.force_close(reason)
        if self._session_by_client.get(session.client_id) is session:
            self.end(session)

    def end_all(self) -> None:
        """Forget all of them: the virtual host goes."""
        for session in self:
            self.end(session)

    # Recovery

    def install(self, record: SessionRecord) -> None:
        """Bring a session back: it waits for its client from its end on, or from now if the broker ended first."""
        client_id, expiry_s = record.client_id, record.expiry_s
        session = Session(
            self._vhost, self._journal, client_id, expiry_s, self.limits, is_durable=True, user=record.user
        )
        self._session_by_client[record.client_id] = session
        waited_s = 0.0
        if record.ended_at_ms:
            waited_s = (self._clock.wall_ms() - record.ended_at_ms) / 1000
        else:
            session.record(ended_at_ms=self._clock.wall_ms())
        self._expire_later(session, max(0.0, record.expiry_s - waited_s))

    def install_subscription(self, record: SubscriptionRecord) -> None:
        """Bring a subscription back; its queue and binding are there already."""
        session = self._session_by_client[record.client_id]
        session.subscriptions.put(record)
        if record.group:
            self.groups.joined(session, record)

    def install_handshake(self, record: HandshakeRecord) -> None:
        """Bring an unfinished delivery back."""
        self._session_by_client[record.client_id].handshakes.install(record)

    def reclaim(self) -> None:
        """Keep what was sent exactly once for whom it was sent to; call once messages are back.

        It is taken out of the queue of a group, and does not expire in one of the session's own.
        """
        self.groups.reclaim(self._clock)
        for session in self:
            positions = set(session.handshakes.remembered)
            if not positions:
                continue
            for own in session.own_queues():
                for entry in own.ready.remove(positions):
                    entry.outlast()
                    own.ready.put_back(entry)
            for subscription in session.subscriptions:
                queue = self._vhost.queue_by_name.get(session.queue_name(subscription)) if subscription.group else None
                for entry in queue.reserve(positions) if queue is not None else ():
                    packet_id, _ = session.handshakes.remembered.pop(entry.position)
                    assert queue is not None
                    session.held[packet_id] = (queue, entry)

    # Time

    def _expire_later(self, session: Session, delay_s: float) -> None:
        if session.expiry_s < NEVER_S:
            self._timers[session.client_id] = self._clock.call_later(delay_s, lambda: self._expired(session))

    def _expired(self, session: Session) -> None:
        if session.holder is None and self._session_by_client.get(session.client_id) is session:
            self.expired += 1
            self.end(session)

    def _cancel_expiry(self, client_id: str) -> None:
        timer = self._timers.pop(client_id, None)
        if timer is not None:
            timer.cancel()
