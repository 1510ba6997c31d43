"""The election of a leader, as one node takes part in it.

Laws:

1. The claim of the log alone decides who leads. Reads, watches and clocks decide when a node tries to claim it.
2. A leader gives up ``LEASE_S`` after it sent its last renewal that succeeded; others try after ``SILENT_S``.
3. A node that does not know whether its claim was made claims again.
4. The lease of a higher epoch is never overwritten, and ends the leadership of a lower one.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Protocol

from gateway.cluster.errors import Deposed, Unanswered
from gateway.cluster.leadership.candidacy import Candidacy, Won
from gateway.cluster.leadership.contact import Contact
from gateway.cluster.leadership.lease import LEADER_LOG, LEASES, Lease, LeaseRecord, lease_key
from gateway.cluster.leadership.member import Role, rank
from gateway.cluster.leadership.members import Members
from gateway.cluster.leadership.pulse import Pulse, Start
from gateway.cluster.leadership.standing import Standing
from gateway.cluster.leadership.timing import BEAT_S, LEASE_S, RANK_S, RETRY_S, TICK_S
from gateway.cluster.metadata import Metadata, MetadataEntry, MetadataWatch
from gateway.cluster.queue_log import Claim, Epoch, QueueId, QueueLogs
from gateway.kernel.clock import Clock


class LeadershipListener(Protocol):
    """Gets reports about the leadership of this node."""

    def on_elected(self, claim: Claim) -> None:
        """Note that this node leads: it owns the log."""
        ...

    def on_lost(self, reason: str) -> None:
        """Note, once for each election, that this node leads no more. Its appends are refused, now or soon."""
        ...


class Leadership:
    """The part of one node in the election of the leader that owns a log. Owns its role and its claim.

    The elections of one node share its ``standing``.
    """

    def __init__(
        self,
        metadata: Metadata,
        logs: QueueLogs,
        clock: Clock,
        start: Start,
        members: Members,
        contact: Contact,
        listener: LeadershipListener,
        log: QueueId = LEADER_LOG,
        standing: Standing | None = None,
    ) -> None:
        self.log = log
        self.role = Role.FOLLOWER
        self.is_eligible = True
        self._metadata = metadata
        self._clock = clock
        self._start = start
        self._members = members
        self._standing = standing or Standing(members)
        self._contact = contact
        self._listener = listener
        self._pulse = Pulse(clock, self._work)
        self._record = LeaseRecord(metadata, self._pulse, lease_key(log))
        self._candidacy = Candidacy(logs, log, members.own.name, self._record, self._pulse, clock)
        self._watch: MetadataWatch | None = None
        self._is_current = False
        self._is_closed = False
        self._is_asking = False
        self._claim: Claim | None = None
        self._renewed_s = 0.0
        self._due_s = 0.0
        self._candidate_s = 0.0
        self._retry_s = 0.0
        #: The lease to give back, and the call that waits for it.
        self._returned: Lease | None = None
        self._resigned: Callable[[], None] | None = None

    @property
    def claim(self) -> Claim | None:
        """The claim of this node while it leads."""
        return self._claim

    @property
    def leader(self) -> Lease | None:
        """The lease of the leader, with the address to forward to; ``None`` while there seems to be none."""
        lease = self._record.lease
        if lease is None or lease.is_vacant or self._record.is_silent or (self._is_own(lease) and not self._claim):
            return None
        return lease

    @property
    def epoch(self) -> Epoch:
        """The highest epoch of a lease that this node knows of."""
        return self._record.epoch

    @property
    def lease_left_s(self) -> float:
        """The time after which this node gives up unless it renews its lease; 0 while it does not lead."""
        return 0.0 if self._claim is None else self._renewed_s + LEASE_S - self._clock.monotonic_s()

    def start(self) -> None:
        """Begin to watch; stand for election as soon as this node has joined and there is no leader."""
        self._pulse.start()
        self._watch = self._metadata.watch((LEASES,), self)

    def close(self) -> None:
        """Stop: make no more calls, and write nothing more. A leader that is closed did not resign."""
        self._is_closed = True
        self._pulse.stop()
        if self._watch is not None:
            self._watch.stop()

    def check(self) -> bool:
        """Return whether this node leads, and give up if its time is over.

        A process that was stopped for a while calls its timers late, so whatever only a leader may do begins with this.
        """
        if self._claim is not None and self._clock.monotonic_s() - self._renewed_s >= LEASE_S:
            self._lose(f"the lease was not renewed for {LEASE_S:g} s")
        return self._claim is not None

    def resign(self, resigned: Callable[[], None] = lambda: None, successor: str = "") -> None:
        """Stop leading, and do not stand for election any more; a follower takes over at once: the successor, if alive.

        ``resigned`` is called when the lease is given back, or cannot be. A leader gets ``on_lost`` before.
        """
        self.is_eligible = False
        lease = self._lease_of(self._claim.epoch) if self._claim is not None and self.check() else None
        if lease is None:
            self._become(Role.FOLLOWER)
            resigned()
            return
        self._returned, self._resigned = replace(lease, successor=successor), resigned
        self._lose("this node resigned")
        self._work()

    def stand(self) -> None:
        """Stand for election again, after ``resign``."""
        self.is_eligible = True
        self._become(self.role)

    # ---- What others write ---------------------------------------------------------------------------------------

    def on_entry(self, entry: MetadataEntry) -> None:
        """Note the lease."""
        if entry.key == self._record.key and self._record.note(entry):
            self._obey()
            self._work()

    def on_current(self) -> None:
        """Begin to take part, now that the lease is known."""
        self._is_current = True
        self._work()

    def _obey(self) -> None:
        """Follow the leader of the lease as it is known now."""
        if self._claim is not None and self._record.epoch > self._claim.epoch:
            leader = "another node" if self._record.lease is None else self._record.lease.leader
            self._lose(f"{leader} leads since epoch {self._record.epoch}")
        if self.role is Role.CANDIDATE and not self._is_open():
            self._become(Role.FOLLOWER)

    def _is_open(self) -> bool:
        """Whether the place of the leader may be free."""
        record = self._record
        return record.is_vacant or record.is_silent or (record.lease is not None and self._is_own(record.lease))

    def _is_own(self, lease: Lease) -> bool:
        own = self._members.own
        return lease.leader == own.name and lease.instance == own.instance

    # ---- Roles ---------------------------------------------------------------------------------------------------

    def _become(self, role: Role) -> None:
        self.role = role
        self._standing.show(self.log, role, is_eligible=self.is_eligible)

    def _lose(self, reason: str) -> None:
        self._claim = None
        self._become(Role.FOLLOWER)
        self._listener.on_lost(reason)

    def _work(self) -> None:
        """Do what is due; called at each tick, and after news."""
        self.check()
        if self._is_asking or self._is_closed or not self._is_current:
            return
        now_s = self._clock.monotonic_s()
        if self._returned is not None:
            self._ask(self._give_back(self._returned))
        elif self._claim is not None:
            if now_s >= self._due_s:
                self._ask(self._renew(self._claim))
        elif self.is_eligible and self._members.is_joined and self._is_open():
            if self.role is Role.FOLLOWER:
                self._candidate_s = now_s
                self._become(Role.CANDIDATE)
            if now_s >= self._retry_s and now_s - self._candidate_s >= RANK_S * self._rank():
                self._ask(self._campaign())

    def _rank(self) -> int:
        """Return how many nodes stand before this one; one more for each other log whose leader it is."""
        lease, own = self._record.lease, self._members.own.name
        former = lease.leader if lease is not None else ""
        others = [each.name for each in self._members.alive if each.is_eligible and each.name != former]
        successor = lease.successor if lease is not None and lease.is_vacant else ""
        if successor == own:
            return 0
        before = rank(own, others, self._record.epoch, self.log - LEADER_LOG)
        return (successor in others) + before + self._standing.led_besides(self.log)

    # ---- Calls of the engine, one at a time ----------------------------------------------------------------------

    def _ask(self, work: Coroutine[Any, Any, None]) -> None:  # Any: as for Start
        self._is_asking = True
        self._start(self._ask_and_note(work))

    async def _ask_and_note(self, work: Coroutine[Any, Any, None]) -> None:  # Any: as for Start
        try:
            await work
        except Unanswered as error:
            self._retry_s = self._clock.monotonic_s() + RETRY_S
            self._contact.unanswered(str(error))
        else:
            self._contact.answered()
        finally:
            self._is_asking = False
        if not self._is_closed:
            self._work_after()

    def _work_after(self) -> None:
        """Give the lease back if that was asked for meanwhile; everything else waits for the next tick."""
        self.check()
        if self._returned is not None:
            self._work()

    async def _renew(self, claim: Claim) -> None:
        sent_s = self._clock.monotonic_s()
        self._due_s = sent_s + TICK_S
        try:
            await self._record.write(self._lease_of(claim.epoch))
        except Deposed as error:
            if self._claim is claim:
                self._lose(str(error))
            return
        if self.check() and self._claim is claim:
            self._renewed_s, self._due_s = sent_s, sent_s + BEAT_S

    async def _give_back(self, lease: Lease) -> None:
        try:
            await self._record.vacate(lease)
        except Deposed:
            pass  # another node leads already
        finally:
            self._returned = None
            resigned, self._resigned = self._resigned, None
            if resigned is not None:
                resigned()

    async def _campaign(self) -> None:
        self._retry_s = self._clock.monotonic_s() + RETRY_S
        if await self._record.read():  # the watch may be late
            self._obey()
        if self._is_closed or self.role is not Role.CANDIDATE:
            return
        won = await self._candidacy.stand(self._lease_of)
        if won is not None and not self._is_closed:
            self._lead(won)

    def _lead(self, won: Won) -> None:
        """Lead, unless the answers came too late, or this node must not lead any more."""
        if not self.is_eligible:
            self._returned = self._lease_of(won.claim.epoch)
        elif self._clock.monotonic_s() - won.since_s < LEASE_S and self._record.epoch == won.claim.epoch:
            self._claim, self._renewed_s = won.claim, won.since_s
            self._due_s = won.since_s + BEAT_S
            self._become(Role.LEADER)
            self._listener.on_elected(won.claim)

    def _lease_of(self, epoch: Epoch) -> Lease:
        own = self._members.own
        return Lease(own.name, own.instance, epoch, own.forwarding, fingerprint=own.fingerprint)
