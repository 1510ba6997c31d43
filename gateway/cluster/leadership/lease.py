"""The lease of the leader: a record that it writes again and again, so that the others see that it is alive.

It says where to forward to. It does not decide who leads: the claim of the log does.
"""

import json
from dataclasses import dataclass, replace
from typing import Final

from gateway.cluster.errors import Deposed, Outdated, Unanswered
from gateway.cluster.leadership.member import Address, decode_address
from gateway.cluster.leadership.pulse import Pulse
from gateway.cluster.leadership.timing import SILENT_S
from gateway.cluster.metadata import NEVER, Key, Metadata, MetadataEntry
from gateway.cluster.queue_log import UNCLAIMED, Epoch, QueueId

#: The keys of leases begin with this part, so that they can be watched alone.
LEASES: Final = "leader"

#: The log of the first cell, which is the only one unless the settings name more.
LEADER_LOG: Final = QueueId(1)


def lease_key(log: QueueId) -> Key:
    """Return the key of the lease of the leader that owns a log."""
    return (LEASES, str(log))


LEASE_KEY: Final = lease_key(LEADER_LOG)

#: How often a lease is written while others write it at the same time.
_MOST_WRITES: Final = 3


@dataclass(frozen=True, slots=True)
class Lease:
    """The leader of an epoch. A vacant lease is one that the leader has given back.

    ``successor`` is the node that is to lead next, if it is alive; empty for any. ``fingerprint`` is that of the
    leader's certificate for connections of other nodes.
    """

    leader: str
    instance: str
    epoch: Epoch
    forwarding: Address
    is_vacant: bool = False
    successor: str = ""
    fingerprint: str = ""


def encode_lease(lease: Lease) -> bytes:
    """Return a lease as JSON."""
    fields = {
        "leader": lease.leader,
        "instance": lease.instance,
        "epoch": lease.epoch,
        "forwarding": list(lease.forwarding),
        "vacant": lease.is_vacant,
        "successor": lease.successor,
        "fingerprint": lease.fingerprint,
    }
    return json.dumps(fields).encode()


def decode_lease(data: bytes) -> Lease | None:
    """Return the lease of a record; ``None`` if it cannot be read. Unknown fields are ignored."""
    try:
        fields = json.loads(data)
        return Lease(
            str(fields["leader"]),
            str(fields["instance"]),
            Epoch(int(fields["epoch"])),
            decode_address(fields["forwarding"]),
            bool(fields["vacant"]),
            str(fields.get("successor", "")),
            str(fields.get("fingerprint", "")),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class LeaseRecord:
    """The lease under a key as a node knows it. ``epoch`` is the highest that it ever had."""

    def __init__(self, metadata: Metadata, pulse: Pulse, key: Key = LEASE_KEY) -> None:
        self.key = key
        self._metadata = metadata
        self._pulse = pulse
        self.revision = NEVER
        self._is_written = False  # also by a record that cannot be read, as a newer gateway may write it
        self._seen_s = pulse.watched_s
        self.lease: Lease | None = None
        self.epoch = UNCLAIMED

    @property
    def is_vacant(self) -> bool:
        """Whether there is no leader, for certain."""
        return not self._is_written or (self.lease is not None and self.lease.is_vacant)

    @property
    def is_silent(self) -> bool:
        """Whether the leader wrote nothing for so long that it may be dead."""
        return self._pulse.watched_s - self._seen_s >= SILENT_S

    def note(self, entry: MetadataEntry | None) -> bool:
        """Note what a watch or a read says; return whether it is news."""
        if entry is None or entry.revision <= self.revision:
            return False
        self.revision = entry.revision
        self._seen_s = self._pulse.watched_s
        self._is_written = entry.value is not None
        self.lease = None if entry.value is None else decode_lease(entry.value)
        if self.lease is not None:
            self.epoch = max(self.epoch, self.lease.epoch)
        return True

    async def read(self) -> bool:
        """Read the record; return whether it is news. :raises Unanswered:"""
        return self.note(await self._metadata.get(self.key))

    async def write(self, lease: Lease) -> None:
        """Write a lease, over older ones only.

        :raises Deposed: if there is one of a higher epoch.
        :raises Unanswered: if the engine does not answer, or others write all the time.
        """
        for _ in range(_MOST_WRITES):
            self._require_highest(lease)
            value = encode_lease(lease)
            try:
                revision = await self._metadata.put(self.key, value, self.revision)
            except Outdated:
                await self.read()
            else:
                self.note(MetadataEntry(self.key, value, revision))
                return
        self._require_highest(lease)
        raise Unanswered("the lease has another revision with each attempt to write it")

    async def vacate(self, lease: Lease) -> None:
        """Give a lease back, so that others need not wait. :raises Deposed: :raises Unanswered:"""
        await self.write(replace(lease, is_vacant=True))

    def _require_highest(self, lease: Lease) -> None:
        if self.epoch > lease.epoch:
            leader = "another node" if self.lease is None else self.lease.leader
            raise Deposed(f"{leader} leads since epoch {self.epoch}")
