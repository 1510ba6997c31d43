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
from tests.durability.crash_trial import CrashTrial
from tests.durability.expected import Key, body
from tests.durability.load import Client
from tests.management_client import put
from tests.running import Gateway
from tests.waiting import wait_until

BROKER_KILLS: Final = 4
WORKER_KILLS: Final = 10

#: The sources of archived messages, as files name them.
SOURCES: Final = ("queue", "exchange")

#: Small segments with a short maximum age, so that every kill interrupts one. Publishers are blocked before so many
#: wait that a busy machine writes them for minutes.
SETTINGS: Final = (
    "archive.max_backlog=4MiB",
    "archive.segment_size=128KiB",
    "archive.segment_age_s=1",
    "streams.segment_size=256KiB",
    "streams.encode=sealed",
)

TIMEOUT_S: Final = 120.0


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


class ArchiveTrial(CrashTrial):
    """A broker with an archived queue, an archived exchange and a stream, and the messages they must contain."""

    def __init__(self, gateway: Gateway, connect: Connect) -> None:
        super().__init__(gateway, connect, SOURCES)

    def declare(self) -> None:
        put(self.gateway, "policies/%2F/keep", {"pattern": "^(kept|amq.fanout)$", "definition": {"archive": True}})
        channel = self.connect().channel()
        channel.queue_declare("kept", durable=True, arguments={"x-max-length": 1000})
        channel.queue_declare("stream", durable=True, arguments={"x-queue-type": "stream"})
        channel.queue_bind("stream", "amq.fanout")

    def clients(self) -> list[Client]:
        return [
            self.publisher("a", "", "kept", ["queue"], window=40),
            self.publisher("b", "amq.fanout", "", ["exchange"], window=40),
        ]

    def kill_broker(self, seconds: float) -> None:
        self.load_for(seconds)
        self.gateway.start()

    def kill_workers(self, times: int, rng: random.Random) -> None:
        publishers = self.load()
        for _ in range(times):
            time.sleep(rng.uniform(0.05, 0.6))  # the time of the kill is the parameter of the trial
            if (pid := worker_of(self.gateway)) is not None:
                os.kill(pid, signal.SIGKILL)
        self.gateway.kill()
        self.ended(publishers)
        self.gateway.start()

    def audit(self) -> None:
        """Wait until all required messages are in files, and check that there are no others."""
        wait_until(
            lambda: not self._missing(),
            lambda: f"missing {min(self._missing(), default=None)}:\n{self.gateway.log[-2000:]}",
            timeout_s=TIMEOUT_S,
            interval_s=0.2,
        )
        for source, expected in self.expectations.items():
            found = archived(self.gateway.data, source)
            assert max(found.values()) == 1
            assert set(found) <= expected.sent
        assert unnamed(self.gateway.data) == set()

    def _missing(self) -> list[Key]:
        return [
            key
            for source, expected in self.expectations.items()
            for key in expected.required - set(archived(self.gateway.data, source))
        ]


@pytest.fixture
def trial(gateway: Gateway, connect: Connect) -> ArchiveTrial:
    trial = ArchiveTrial(gateway, connect)
    gateway.settings = SETTINGS
    gateway.start()
    trial.declare()
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
    (_, file), *_ = wait_until(lambda: list(files(trial.gateway.data)), "nothing is archived", timeout_s=TIMEOUT_S)
    day = file.parent
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


def are_encoded(data: Path) -> bool:
    """Return whether all segments of streams with encoded segments are encoded."""
    encoded = set(data.glob("streams/*/*.arrow"))
    chunks = {path for directory in {path.parent for path in encoded} for path in directory.glob("*.chunks")}
    return bool(chunks) and {path.stem for path in chunks} == {path.stem for path in encoded}


def test_every_sealed_segment_is_encoded_once_despite_kills(trial: ArchiveTrial) -> None:
    rng = random.Random(8)
    trial.kill_broker(1.0)
    trial.kill_workers(4, rng)
    wait_until(lambda: are_encoded(trial.gateway.data), "some are not encoded", timeout_s=TIMEOUT_S, interval_s=0.2)
    encoded = {path.stem: path.stat() for path in trial.gateway.data.glob("streams/*/*.arrow")}
    trial.gateway.restart()
    trial.kill_broker(0.5)
    again = {path.stem: path.stat() for path in trial.gateway.data.glob("streams/*/*.arrow")}
    assert {stem: again[stem].st_ino for stem in encoded} == {stem: stat.st_ino for stem, stat in encoded.items()}
