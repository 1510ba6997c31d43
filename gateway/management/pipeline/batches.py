"""A batch of the sink as a commit describes it: its identity, its attempts, its destination."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from gateway.kernel.journal.records.batches import BatchRecord
from gateway.management.pipeline.rows import RowDefaults
from gateway.management.pipeline.staged_files import AttemptKey


@dataclass(frozen=True, slots=True)
class BatchIdentity:
    """The identity of a batch, by which a repetition is recognised."""

    producer: str
    query: str
    batch: int


class CommittedAttempt(NamedTuple):
    """An attempt of a batch, with the numbers of its parts and rows."""

    name: str
    parts: int
    rows: int


class PartPlace(NamedTuple):
    """A part of a batch: its attempt, and its number there."""

    key: AttemptKey
    number: int


def with_following(places: Iterator[PartPlace]) -> Iterator[tuple[PartPlace, PartPlace | None]]:
    """Yield each part and the one after it, which can be read meanwhile; ``None`` after the last."""
    place = next(places, None)
    while place is not None:
        following = next(places, None)
        yield place, following
        place = following


@dataclass(frozen=True, slots=True)
class StagedBatch:
    """A commit of a user in a virtual host: attempts in the order of publishing, and what becomes of their rows."""

    vhost: str
    user: str
    identity: BatchIdentity | None
    attempts: Sequence[CommittedAttempt]
    defaults: RowDefaults
    may_drop: bool = False
    dead_letter_exchange: str | None = None

    @property
    def name(self) -> str:
        """The name of the query, or of the batch if it has no identity: it tells batches in progress apart."""
        identity = self.identity
        named = [*self.attempts] if identity is None else [identity.producer, identity.query]
        return sha256(json.dumps([identity is None, named]).encode()).hexdigest()[:32]

    @property
    def rows(self) -> int:
        """The number of rows of all attempts."""
        return sum(attempt.rows for attempt in self.attempts)

    @property
    def keys(self) -> list[AttemptKey]:
        """The attempts."""
        return [self.key(attempt.name) for attempt in self.attempts]

    def key(self, attempt: str) -> AttemptKey:
        """Return an attempt of the batch by its name."""
        return AttemptKey(self.vhost, self.user, attempt)

    def places(self) -> Iterator[PartPlace]:
        """Yield the parts of all attempts in the order of publishing."""
        for name, parts, _ in self.attempts:
            for number in range(parts):
                yield PartPlace(self.key(name), number)

    def record(self, now_ms: int) -> BatchRecord:
        """Return the record that commits the batch."""
        identity = self.identity or BatchIdentity("", "", -1)
        return BatchRecord(
            vhost=self.vhost,
            name=self.name,
            user=self.user,
            producer=identity.producer,
            query=identity.query,
            batch=identity.batch,
            attempts=json.dumps(self.attempts).encode(),
            rows=self.rows,
            exchange=self.defaults.exchange,
            routing_key=self.defaults.routing_key,
            may_drop=self.may_drop,
            dead_letter_exchange=self.dead_letter_exchange or "",
            committed_at_ms=now_ms,
        )

    @classmethod
    def of_record(cls, record: BatchRecord) -> "StagedBatch":
        """Return the batch that a record committed."""
        return cls(
            vhost=record.vhost,
            user=record.user,
            identity=BatchIdentity(record.producer, record.query, record.batch) if record.batch >= 0 else None,
            attempts=[CommittedAttempt(*attempt) for attempt in json.loads(record.attempts)],
            defaults=RowDefaults(record.exchange, record.routing_key),
            may_drop=record.may_drop,
            dead_letter_exchange=record.dead_letter_exchange or None,
        )
