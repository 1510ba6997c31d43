"""Kills of broker and worker while an archive is written as an Iceberg table: each confirmed message is in it once."""

import random
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.broker.conftest import Connect
from tests.columnar.iceberg_tables import query, rows_in
from tests.durability.expected import Key, body
from tests.durability.test_archive_killed import SETTINGS, SOURCES, ArchiveTrial
from tests.running import Gateway
from tests.waiting import wait_until

BROKER_KILLS: Final = 2
WORKER_KILLS: Final = 5

#: Larger segments, because each is a commit.
BOUNDED: Final = ("archive.segment_size=512KiB", "archive.max_backlog=2MiB")

#: A worker that has been killed imports its libraries again.
TIMEOUT_S: Final = 80.0


def keys_in(data: Path, source: str) -> Counter[Key]:
    """Return the number of copies of each message of a source, as DuckDB finds them, after checking their bodies."""
    if not (data / "iceberg/archive/metadata/version-hint.text").exists():
        return Counter()
    found: Counter[Key] = Counter()
    for message_id, content in query(data, "message_id, body", rest=f"WHERE source = '{source}'"):
        publisher, _, number = message_id.rpartition("-")
        key = Key(publisher, int(number))
        assert content == body(key)
        found[key] += 1
    return found


class IcebergTrial(ArchiveTrial):
    """A broker whose archive is an Iceberg table."""

    def audit(self) -> None:
        """Wait until all required messages are in the table, and check that no other is, and none twice."""
        wait_until(
            lambda: not self._missing(),
            lambda: f"missing {min(self._missing(), default=None)}:\n{self.gateway.log[-2000:]}",
            timeout_s=TIMEOUT_S,
            interval_s=0.5,
        )
        self.check()

    def check(self) -> None:
        """Check that no row is there twice, or was not sent, and that the readers agree."""
        for source in SOURCES:
            found = keys_in(self.gateway.data, source)
            assert max(found.values(), default=1) == 1
            assert set(found) <= self.expectations[source].sent

    def _missing(self) -> list[Key]:
        return [
            key
            for source, expected in self.expectations.items()
            for key in expected.required - set(keys_in(self.gateway.data, source))
        ]


@pytest.fixture
def trial(gateway: Gateway, connect: Connect) -> IcebergTrial:
    trial = IcebergTrial(gateway, connect)
    gateway.settings = (*SETTINGS, *BOUNDED, "archive.format=iceberg")
    gateway.start()
    trial.declare()
    return trial


def test_killing_the_broker_neither_loses_nor_duplicates_rows(trial: IcebergTrial) -> None:
    rng = random.Random(9)
    for _ in range(BROKER_KILLS):
        trial.kill_broker(rng.uniform(0.5, 2.5))
        trial.check()
    trial.audit()
    rows = rows_in(trial.gateway.data)
    assert rows.num_rows == sum(len(keys_in(trial.gateway.data, source)) for source in SOURCES)


def test_killing_the_worker_neither_loses_nor_duplicates_rows(trial: IcebergTrial) -> None:
    trial.kill_workers(WORKER_KILLS, random.Random(10))
    trial.audit()
