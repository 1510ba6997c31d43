"""The longest waits of light clients during floods and heavy requests: ``python -m benchmarks.lag``.

Each scenario runs on a fresh broker. A probe client for each protocol sends requests all the time, in a separate
process.
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from benchmarks.lag.probes import PROBES
from benchmarks.lag.scenarios import SCENARIOS, Scenario, prepared
from benchmarks.load.host import describe
from benchmarks.load.idle import raise_descriptor_limit
from benchmarks.load.peers import MANAGED, PEERS, SUBJECT, Peer
from benchmarks.load.running import Broker

RESULTS: Final = Path(__file__).parent.parent / "results"

#: Longest permitted wait of a probe client, in milliseconds: the maximum, and the 99th percentile.
REQUIRED_LONGEST_MS, REQUIRED_P99_MS = 100.0, 25.0


@dataclass(frozen=True, slots=True)
class Row:
    """The waits of one probe client in one scenario on one broker; ``failure`` is the reason if there are none."""

    scenario: str
    broker: str
    protocol: str
    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    longest_ms: float = 0.0
    memory_mib: int = 0
    failure: str = ""

    def __str__(self) -> str:
        if self.failure:
            return f"| {self.scenario} | {self.broker} | {self.protocol} | | | | {self.failure} | |"
        figures = f"{self.p50_ms:.1f} | {self.p99_ms:.1f} | {self.longest_ms:.0f}"
        found = f"{self.count:,} | {figures} | {self.memory_mib:,}"
        return f"| {self.scenario} | {self.broker} | {self.protocol} | {found} |"


def main() -> int:
    """Measure, print and save; return 1 if the gateway misses a limit."""
    options = _options().parse_args()
    raise_descriptor_limit()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    peers = [replace(peer, launch=MANAGED.launch) if peer.name == SUBJECT.name else peer for peer in PEERS]
    chosen = [peer for peer in peers if options.peer in (None, peer.name) and not peer.absence()]
    rows: list[Row] = []
    for scenario in SCENARIOS:
        if options.only is None or any(part in scenario.name for part in options.only):
            for peer in chosen:
                for row in _measure(scenario, peer, options.scale, options.explain):
                    print(row, flush=True)
                    rows.append(row)
    text = _report(rows, options.scale)
    print(f"\n{text}")
    if options.output:
        options.output.write_text(text)
    late = [row for row in rows if row.broker == SUBJECT.name and _is_late(row)]
    return 1 if late else 0


def _measure(scenario: Scenario, peer: Peer, scale: float, explain: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory, peer.launch(Path(directory)) as broker:
        if not scenario.needs <= broker.ports.keys():
            return
        try:
            waits, memory = _waits(scenario, broker, scale)
        except (OSError, RuntimeError, ValueError) as error:
            yield Row(scenario.name, peer.name, "", failure=f"{type(error).__name__}: {error}"[:200])
            return
        for protocol, times in waits.items():
            times.sort()
            if times:
                p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
                yield Row(scenario.name, peer.name, protocol, len(times), p50, p99, times[-1], memory)
        if explain and peer.name == SUBJECT.name:
            log = (Path(directory) / "output.log").read_text(errors="replace")
            print(*(line for line in log.splitlines() if "took long" in line or "rror" in line), sep="\n", flush=True)


def _waits(scenario: Scenario, broker: Broker, scale: float) -> tuple[Mapping[str, list[float]], int]:
    """Run a scenario; return the waits by protocol, and the broker's memory at the end, in MiB."""
    with prepared(scenario, broker, scale) as run, _probing(broker) as probes:
        run()
        memory = _memory_mib(broker.pid)
        printed, _ = probes.communicate(timeout=300)
    waits: Mapping[str, list[float]] = json.loads(printed)
    return waits, memory


@contextmanager
def _probing(broker: Broker) -> Iterator["subprocess.Popen[str]"]:
    ports = [f"{name}={port}" for name, port in broker.ports.items() if name in PROBES]
    command = [sys.executable, "-m", "benchmarks.lag.probes", *ports]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the probe clients did not start")
        yield process
    finally:
        process.kill()
        process.wait()


def _memory_mib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def _is_late(row: Row) -> bool:
    return bool(row.failure) or row.longest_ms > REQUIRED_LONGEST_MS or row.p99_ms > REQUIRED_P99_MS


def _report(rows: Sequence[Row], scale: float) -> str:
    host = describe(Path(tempfile.gettempdir()))
    lines = [
        f"# Waits of probe clients,  {date.today()}",
        "",
        f"{host}.",
        f"Required: the longest wait under {REQUIRED_LONGEST_MS:.0f} ms, the p99 under {REQUIRED_P99_MS:.0f} ms.",
        *([] if scale == 1 else [f"All sizes scaled by {scale}."]),
        "",
        "| scenario | broker | probe |  answers | p50 ms | p99 ms | longest ms | memory MiB |",
        "|---|---|---|---|---|---|---|---|",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="part of a scenario's name; may be repeated")
    parser.add_argument("--peer", choices=[peer.name for peer in PEERS], help="measure only this broker")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the scenarios (default: %(default)s)")
    parser.add_argument("--explain", action="store_true", help="print the long turns in the gateway's log")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
