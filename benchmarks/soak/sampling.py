"""Samples taken every ten seconds: the process, the broker's statistics, and the waits of probe clients."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from benchmarks.lag.probes import PROBES
from benchmarks.load.processes import cpu_seconds, directory_bytes, resident_bytes
from benchmarks.soak.broker_under_test import BrokerUnderTest

MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of the broker. Memory and disk are in MiB, ``second`` counts from the start, other times are in
    ms.

    ``wait_longest_own`` excludes the time spent waiting for a processor.
    """

    second: float
    resident: float
    in_use: float
    cpu_percent: float
    files: int
    threads: int
    disk: float
    turns_p99: float
    turn_longest: float
    turn_longest_cause: str
    turn_longest_recent: float
    wait_p99: float
    wait_longest: float
    wait_longest_own: float
    queues: int
    exchanges: int
    bindings: int
    connections: int
    channels: int
    consumers: int
    sessions: int
    vhosts: int
    users: int
    policies: int
    retained: int
    messages: int
    confirmed: int
    arrived: int
    failures: int


#: Fields that must be the same before and after.
COUNTS: Final = (
    "queues",
    "exchanges",
    "bindings",
    "connections",
    "channels",
    "consumers",
    "sessions",
    "vhosts",
    "users",
    "policies",
    "retained",
    "messages",
)

#: Counts that the management API lists, by field.
_LISTED: Final = {
    "bindings": "bindings",
    "sessions": "mqtt/sessions",
    "vhosts": "vhosts",
    "users": "users",
    "policies": "policies",
    "retained": "mqtt/retained/%2F",
}


class Sampler:
    """Takes samples of one broker."""

    def __init__(self, broker: BrokerUnderTest, data: Path, probes: "subprocess.Popen[str]") -> None:
        self._broker = broker
        self._data = data
        self._probes = probes
        self._started = self._last = time.monotonic()
        self._cpu_s = cpu_seconds(broker.pid)

    def sample(self) -> Sample:
        """Take a sample now."""
        broker = self._broker
        cpu_s, now = cpu_seconds(broker.pid), time.monotonic()
        percent = 100 * (cpu_s - self._cpu_s) / max(now - self._last, 0.001)
        self._cpu_s, self._last = cpu_s, now
        (node,), overview, waits = broker.api("GET", "nodes"), broker.api("GET", "overview"), self._waits()
        totals: dict[str, int] = overview["object_totals"]
        return Sample(
            second=round(now - self._started, 1),
            resident=round(resident_bytes(broker.pid) / MIB, 2),
            in_use=round(node["mem_used"] / MIB, 2),
            cpu_percent=round(percent, 1),
            files=node["fd_used"],
            threads=node["proc_used"],
            disk=round(_disk(self._data) / MIB, 2),
            turns_p99=node["turns"]["p99_ms"],
            turn_longest=node["turns"]["longest_ms"],
            turn_longest_cause=node["turns"]["longest_cause"].replace(",", ";"),
            turn_longest_recent=node["turns"]["longest_recent_ms"],
            wait_p99=round(waits["p99"], 2),
            wait_longest=round(waits["longest"], 2),
            wait_longest_own=round(waits["longest_own"], 2),
            messages=overview["queue_totals"].get("messages", 0),
            confirmed=broker.ledger.all_confirmed,
            arrived=broker.ledger.all_arrived,
            failures=len(broker.ledger.failures),
            **{name: totals[name] for name in ("queues", "exchanges", "connections", "channels", "consumers")},
            **{field: _length(broker.api("GET", path)) for field, path in _LISTED.items()},
        )

    def _waits(self) -> dict[str, Any]:
        assert self._probes.stdin is not None
        assert self._probes.stdout is not None
        self._probes.stdin.write("\n")
        self._probes.stdin.flush()
        waits: dict[str, Any] = json.loads(self._probes.stdout.readline())
        if not waits["alive"]:
            raise ConnectionError("the connection of a probe client was closed")
        return waits


@contextmanager
def probes(broker: BrokerUnderTest) -> Iterator["subprocess.Popen[str]"]:
    """Run the probe clients during the block."""
    ports = [f"{name}={port}" for name, port in broker.ports.items() if name in PROBES]
    command = [sys.executable, "-m", "benchmarks.soak.probes", str(broker.pid), *ports]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def header() -> str:
    """Return the first line of the CSV."""
    return ",".join(field.name for field in fields(Sample))


def line(sample: Sample) -> str:
    """Return a sample as a line of the CSV."""
    return ",".join(str(getattr(sample, field.name)) for field in fields(Sample))


def _length(listing: Any) -> int:
    return len(listing if isinstance(listing, list) else listing.get("items", listing))


def _disk(data: Path) -> int:
    for _ in range(5):
        try:
            return directory_bytes(data)
        except FileNotFoundError:  # a file was deleted meanwhile
            continue
    return 0
