"""Kills of broker and worker while an archive is written: each confirmed message is in exactly one complete file."""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests.broker.conftest import Connect
from tests.durability.expected import ExpectedMessages, Key, body
from tests.durability.load import Publisher
from tests.management_client import put
from tests.running import Gateway

BROKER_KILLS: Final = 4
WORKER_KILLS: Final = 10

#: Small segments with a short maximum age, so that every kill interrupts one.
SETTINGS: Final = (
    "archive.segment_size=128KiB",
    "archive.segment_age_s=1",
    "streams.segment_size=256KiB",
    "streams.encode=sealed",
)

TIMEOUT_S: Final = 40.0


def files(data: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield the readable lines of every manifest, with the file that each names."""
    for manifest in sorted((data / "archive").glob("vhost=*/date=*/_manifest.jsonl")):
        for written in manifest.read_text().splitlines():
            with suppress(ValueError):
                line = json.loads(written)
                yield line, manifest.parent / line["file"]


def archived(data: Path, source: str) -> Counter[Key]:
    """Return the number of copies of each message of a source in the archive; every file must be readable."""
    found: Counter[Key] = Counter()
    for line, path in files(data):
        if line["kind"] == source:
            keys = keys_in(path)
            assert len(keys) == line["rows"]
            found.update(keys)
    return found


@cache
def keys_in(path: Path) -> tuple[Key, ...]:
    """Return the messages in a file, after checking their bodies. Cached, since files never change."""
    keys = []
    for row in pq.ParquetFile(path).read(["message_id", "body"]).to_pylist():
        publisher, _, number = row["message_id"].rpartition("-")
        key = Key(publisher, int(number))
        assert row["body"] == body(key)
        keys.append(key)
    return tuple(keys)


def unnamed(data: Path) -> set[str]:
    """Return the Parquet files that no manifest names."""
    visible = {str(path) for path in (data / "archive").glob("vhost=*/date=*/*.parquet")}
    return visible - {str(path) for _, path in files(data)}


def worker_of(gateway: Gateway) -> int | None:
    """Return the process id of the worker, ``None`` without one."""
    children = Path(f"/proc/{gateway.child.pid}/task/{gateway.child.pid}/children").read_text().split()
    return int(children[0]) if children else None


class ArchiveTrial:
    """A broker with an archived queue, an archived exchange and a stream, and the messages they must contain."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        self.gateway = gateway
        self.queue, self.exchange = ExpectedMessages(), ExpectedMessages()
        self._connect = connect
        self._next = dict.fromkeys("ab", 0)

    def begin(self) -> None:
        self.gateway.settings = SETTINGS
        self.gateway.start()
        put(self.gateway, "policies/%2F/keep", {"pattern": "^(kept|amq.fanout)$", "definition": {"archive": True}})
        channel = self._connect().channel()
        channel.queue_declare("kept", durable=True, arguments={"x-max-length": 1000})
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind("stream", "amq.fanout")

    def load(self) -> list[Publisher]:
        publishers = [
            Publisher(self.gateway.broker, "a", self._next["a"], "", "kept", [self.queue], 40),
            Publisher(self.gateway.broker, "b", self._next["b"], "amq.fanout", "", [self.exchange], 40),
        ]
        for publisher in publishers:
            publisher.start()
        for publisher in publishers:
            assert publisher.is_busy.wait(10), "a publisher gets no answer"
        return publishers

    def ended(self, publishers: list[Publisher]) -> None:
        for publisher in publishers:
            publisher.ended()
            self._next[publisher.name] = publisher.next_number

    def kill_broker(self, seconds: float) -> None:
        publishers = self.load()
        time.sleep(seconds)
        self.gateway.kill()
        self.ended(publishers)
        self.gateway.start()

    def kill_workers(self, times: int, rng: random.Random) -> None:
        publishers = self.load()
        for _ in range(times):
            time.sleep(rng.uniform(0.05, 0.6))
            if (pid := worker_of(self.gateway)) is not None:
                os.kill(pid, signal.SIGKILL)
        self.gateway.kill()
        self.ended(publishers)
        self.gateway.start()

    def audit(self) -> None:
        """Wait until all required messages are in files, and check that there are no others."""
        deadline = time.monotonic() + TIMEOUT_S
        while missing := [*self._missing("queue", self.queue), *self._missing("exchange", self.exchange)]:
            assert time.monotonic() < deadline, f"missing {len(missing)}, {min(missing)}:\n{self.gateway.log[-2000:]}"
            time.sleep(0.2)
        for source, expected in (("queue", self.queue), ("exchange", self.exchange)):
            found = archived(self.gateway.data, source)
            assert max(found.values()) == 1
            assert set(found) <= expected.sent
        assert unnamed(self.gateway.data) == set()

    def _missing(self, source: str, expected: ExpectedMessages) -> set[Key]:
        return expected.required - set(archived(self.gateway.data, source))


@pytest.fixture
def trial(gateway: Gateway, connect: Connect) -> ArchiveTrial:
    trial = ArchiveTrial(gateway, connect)
    trial.begin()
    return trial


def test_killing_the_broker_neither_loses_nor_duplicates_archived_messages(trial: ArchiveTrial) -> None:
    rng = random.Random(6)
    for _ in range(BROKER_KILLS):
        trial.kill_broker(rng.uniform(0.2, 2.0))
    trial.audit()


def test_killing_the_worker_neither_loses_nor_duplicates_archived_messages(trial: ArchiveTrial) -> None:
    trial.kill_workers(WORKER_KILLS, random.Random(7))
    trial.audit()


def test_incomplete_and_foreign_files_in_the_archive_are_ignored(trial: ArchiveTrial) -> None:
    publishers = trial.load()
    deadline = time.monotonic() + TIMEOUT_S
    while not list(files(trial.gateway.data)):
        assert time.monotonic() < deadline, "nothing is archived"
        time.sleep(0.1)
    day = next(files(trial.gateway.data))[1].parent
    for name in ("holiday.parquet", ".queue-kept-1-0-5.parquet.1.tmp", "readme.txt"):
        (day / name).write_bytes(b"nonsense")
    with (day / "_manifest.jsonl").open("ab") as manifest:
        manifest.write(b'{"file": "torn')
    trial.gateway.kill()
    trial.ended(publishers)
    trial.gateway.start()
    assert unnamed(trial.gateway.data) >= {str(day / "holiday.parquet")}
    (day / "holiday.parquet").unlink()
    trial.audit()
    assert not list(day.glob(".queue-kept-1-0-5*"))


def test_every_sealed_segment_is_encoded_once_despite_kills(trial: ArchiveTrial) -> None:
    rng = random.Random(8)
    trial.kill_broker(1.0)
    trial.kill_workers(4, rng)
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        encoded = {path.stem: path.stat() for path in trial.gateway.data.glob("streams/*/*.arrow")}
        directories = {path.parent for path in trial.gateway.data.glob("streams/*/*.arrow")}
        chunks = {path.stem for directory in directories for path in directory.glob("*.chunks")}
        if chunks and chunks == set(encoded):
            break
        assert time.monotonic() < deadline, f"not encoded: {sorted(chunks - set(encoded))}"
        time.sleep(0.2)
    trial.gateway.restart()
    trial.kill_broker(0.5)
    again = {path.stem: path.stat() for path in trial.gateway.data.glob("streams/*/*.arrow")}
    assert {stem: again[stem].st_ino for stem in encoded} == {stem: stat.st_ino for stem, stat in encoded.items()}
