"""Queues are taken from their owners again and again, without telling them: no record of an old epoch follows a claim.

Without the fence the same storm shows violations, so that the test would notice them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.cluster.batches import decode_batch
from gateway.cluster.errors import ClusterError
from gateway.cluster.log_replay import replay
from gateway.cluster.queue_log import UNCLAIMED, Claim, QueueId, StoredBatch
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.errors import NatsError
from gateway_jetstream.jetstream.publishing import (
    EXPECTED_SEQUENCE,
    EXPECTED_SUBJECT,
    JetStreamPublisher,
    PublishAck,
    StreamPublisher,
)
from tests.jetstream.appending import Appender
from tests.jetstream.places import JetStreamPlace

#: The number of nodes, queues and thefts.
_NODES = 3
_QUEUES = 4
_THEFTS = 24
_THEFTS_WITHOUT_FENCE = 8


class Unfenced(StreamPublisher):
    """Publishes batches without what the fence consists of. Claims are compared as always."""

    def __init__(self, client: NatsClient) -> None:
        self._publisher = JetStreamPublisher(client)

    def send(
        self,
        subject: str,
        payload: bytes,
        fields: dict[str, str],
        timeout_s: float,
        published: Callable[[PublishAck | NatsError], None],
    ) -> None:
        if EXPECTED_SUBJECT in fields:
            fields = {
                name: value for name, value in fields.items() if name not in (EXPECTED_SEQUENCE, EXPECTED_SUBJECT)
            }
        self._publisher.send(subject, payload, fields, timeout_s, published)


@dataclass
class Storm:
    """The record of a storm: all claims of each queue, all appenders, and the batches that were stored in the end."""

    claims: dict[QueueId, list[Claim]] = field(default_factory=dict)
    appenders: list[Appender] = field(default_factory=list)
    batches: dict[QueueId, list[StoredBatch]] = field(default_factory=dict)

    @property
    def violations(self) -> int:
        """The number of batches of an old epoch after a later claim."""
        return sum(
            any(decode_batch(batch.data).epoch < claim.epoch < batch.position for claim in self.claims[queue])
            for queue, batches in self.batches.items()
            for batch in batches
        )


def stormed(place: JetStreamPlace, *, is_fenced: bool, seed: int) -> Storm:
    """Steal queues from their owners for a while."""
    chance, storm = random.Random(seed), Storm()
    publishers: list[StreamPublisher] = []
    nodes = []
    for _ in range(_NODES):
        client = place.client()
        publishers.append(JetStreamPublisher(client) if is_fenced else Unfenced(client))
        nodes.append(place.cluster(client, publishers[-1]).logs)
    queues = [place.new_queue() for _ in range(_QUEUES)]
    storm.claims = {queue: [] for queue in queues}
    for theft in range(_THEFTS if is_fenced else _THEFTS_WITHOUT_FENCE):
        queue = queues[theft % _QUEUES]
        thief = Appender(nodes[chance.randrange(_NODES)], place.clock)
        former = storm.claims[queue][-1].epoch if storm.claims[queue] else UNCLAIMED
        try:
            place.run(thief.begin(queue, f"thief-{theft}", former))
        except ClusterError:
            if is_fenced:
                raise  # without the fence a log may be out of order, which a replay reports
        assert thief.claim is not None
        storm.claims[queue].append(thief.claim)
        storm.appenders.append(thief)
        until_s = place.clock.monotonic_s() + chance.uniform(0.0, 0.1)
        place.until(lambda until_s=until_s: place.clock.monotonic_s() >= until_s)
    for appender in storm.appenders:
        appender.finish()
    last = {queue: claims[-1] for queue, claims in storm.claims.items()}
    if is_fenced:
        place.until(lambda: all(appender.is_idle for appender in storm.appenders))
    for appender in storm.appenders:
        appender.close()
    for queue, claim in last.items():
        final = place.run(nodes[0].claim(queue, "reader", claim.epoch))
        found = storm.batches.setdefault(queue, [])
        place.run(nodes[0].read(final, found.append))
    return storm


def test_no_record_of_an_old_epoch_follows_a_claim(place: JetStreamPlace) -> None:
    storm = stormed(place, is_fenced=True, seed=1)
    assert sum(len(batches) for batches in storm.batches.values()) > _THEFTS
    assert storm.violations == 0
    deposed = [appender for appender in storm.appenders if appender.is_deposed]
    assert len(deposed) == _THEFTS - _QUEUES, "an owner was robbed and did not notice"
    for queue, claims in storm.claims.items():
        reader = place.logs()
        records: list[bytes] = []
        later = place.run(reader.claim(queue, "last", place.run(reader.owner(queue)).epoch))  # type: ignore[union-attr]
        place.run(replay(reader, later, lambda record, records=records: records.append(record.payload)))  # type: ignore[misc]
        acknowledged = [
            text
            for claim in claims
            for appender in storm.appenders
            if appender.claim == claim
            for text in appender.acknowledged
        ]
        assert len(records) == len(set(records)), "a record was stored twice"
        kept = set(acknowledged)
        assert [text for text in records if text in kept] == acknowledged, (
            "an acknowledged record is lost or out of order"
        )


def test_without_the_fence_records_of_old_epochs_follow_claims(place: JetStreamPlace) -> None:
    assert stormed(place, is_fenced=False, seed=1).violations > 0
