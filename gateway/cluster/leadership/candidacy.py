"""One attempt of a candidate to become the leader: find the last epoch, claim the log, write the lease."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.cluster.errors import Deposed, Outdated
from gateway.cluster.leadership.lease import Lease, LeaseRecord
from gateway.cluster.leadership.pulse import Pulse
from gateway.cluster.leadership.timing import LEASE_S, SILENT_S
from gateway.cluster.queue_log import UNCLAIMED, Claim, Epoch, QueueId, QueueLogs
from gateway.kernel.clock import Clock

#: The lease of a new leader begins when it sent its lease, and so much after it sent its claim at most: another node
#: that sees the claim in the log waits from then on.
_MOST_CLAIM_S: Final = SILENT_S - LEASE_S


@dataclass(frozen=True, slots=True)
class Won:
    """A claim whose lease is written, and since when the lease counts."""

    claim: Claim
    since_s: float


class Candidacy:
    """Attempts of one node. Owns the claim that it noticed in the log, by a node that has no lease yet."""

    def __init__(
        self, logs: QueueLogs, log: QueueId, name: str, record: LeaseRecord, pulse: Pulse, clock: Clock
    ) -> None:
        self._logs = logs
        self._log = log
        self._name = name
        self._record = record
        self._pulse = pulse
        self._clock = clock
        self._noticed = UNCLAIMED
        self._noticed_s = 0.0

    async def stand(self, lease_of: Callable[[Epoch], Lease]) -> Won | None:
        """Claim the log and write the lease; return ``None`` if another node was faster.

        :raises Unanswered: if the engine does not answer; the next attempt finds out what was done.
        """
        expected = await self._expected_epoch()
        if expected is None:
            return None
        claimed_s = self._clock.monotonic_s()
        try:
            claim = await self._logs.claim(self._log, self._name, expected)
        except Outdated:
            return None
        written_s = self._clock.monotonic_s()
        try:
            await self._record.write(lease_of(claim.epoch))
        except Deposed:
            return None
        return Won(claim, min(written_s, claimed_s + _MOST_CLAIM_S))

    async def _expected_epoch(self) -> Epoch | None:
        """Return the epoch to expect; ``None`` if another node has claimed the log, and may write its lease soon.

        A claim with the name of this node had no answer: it counts for nothing but its epoch.
        """
        revision, known = self._record.revision, self._record.epoch
        owner = await self._logs.owner(self._log)
        if self._record.revision != revision:
            return None  # the watch reported a new leader meanwhile: its epoch must not be the expected one
        if owner is None or owner.epoch <= known:
            return known
        if owner.node != self._name:
            if owner.epoch != self._noticed:
                self._noticed, self._noticed_s = owner.epoch, self._pulse.watched_s
            if self._pulse.watched_s - self._noticed_s < SILENT_S:
                return None
        return owner.epoch
