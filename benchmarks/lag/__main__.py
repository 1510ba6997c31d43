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
from benchmarks.lag.recovery import REQUIRED_ANSWER_MS, SCENARIO, recover
from benchmarks.lag.scenarios import SCENARIOS, Scenario, prepared
from benchmarks.load.choosing import add_option, is_chosen
from benchmarks.load.host import describe
from benchmarks.load.idle import raise_descriptor_limit
from benchmarks.load.peers import MANAGED, PEERS, SUBJECT, Peer
from benchmarks.load.running import Broker

RESULTS: Final = Path(__file__).parent.parent / "results"


@dataclass(frozen=True, slots=True)
class Limits:
    """Longest permitted waits, in milliseconds."""

    longest_ms: float
    p99_ms: float


#: Of a probe client, and of a new client of a broker that recovers.
REQUIRED: Final = Limits(100.0, 25.0)
REQUIRED_IN_RECOVERY: Final = Limits(REQUIRED_ANSWER_MS, REQUIRED_ANSWER_MS)


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
    limits: Limits = REQUIRED

    @property
    def is_late(self) -> bool:
        """Whether a client waited for too long, or got no answer."""
        return bool(self.failure) or self.longest_ms > self.limits.longest_ms or self.p99_ms > self.limits.p99_ms

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
        if is_chosen(scenario.name, options.only):
            for peer in chosen:
                for row in _measure(scenario, peer, options.scale, options.explain):
                    print(row, flush=True)
                    rows.append(row)
    if options.peer in (None, SUBJECT.name) and is_chosen(SCENARIO, options.only):
        for row in _recovery(options.scale):
            print(row, flush=True)
            rows.append(row)
    text = _report(rows, options.scale)
    print(f"\n{text}")
    if options.output:
        options.output.write_text(text)
    late = [row for row in rows if row.broker == SUBJECT.name and row.is_late]
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
            if times:
                yield _row(scenario.name, peer.name, protocol, times, memory)
        if explain and peer.name == SUBJECT.name:
            log = (Path(directory) / "output.log").read_text(errors="replace")
            print(*(line for line in log.splitlines() if "took long" in line or "rror" in line), sep="\n", flush=True)


def _recovery(scale: float) -> Iterator[Row]:
    """Measure new clients of a gateway that recovers."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            found = recover(Path(directory), scale)
        except (OSError, RuntimeError, ValueError) as error:
            yield Row(SCENARIO, SUBJECT.name, "", failure=f"{type(error).__name__}: {error}"[:200])
            return
    for protocol, answers in found.answers.items():
        delay_ms = found.delay_ms(protocol)
        scenario = f"{SCENARIO}, {(answers.served_ms - answers.first_ms) / 1e3:.1f} s"
        late = f"the first answer came {delay_ms:.0f} ms after that of an empty broker"
        row = _row(scenario, SUBJECT.name, protocol, answers.waits_ms, found.memory_mib)
        yield replace(row, limits=REQUIRED_IN_RECOVERY, failure=late if delay_ms > REQUIRED_ANSWER_MS else "")


def _row(scenario: str, broker: str, protocol: str, waits_ms: list[float], memory_mib: int) -> Row:
    times = sorted(waits_ms)
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    return Row(scenario, broker, protocol, len(times), p50, p99, times[-1], memory_mib)


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


def _report(rows: Sequence[Row], scale: float) -> str:
    host = describe(Path(tempfile.gettempdir()))
    lines = [
        f"# Waits of probe clients,  {date.today()}",
        "",
        f"{host}.",
        f"Required: the longest wait under {REQUIRED.longest_ms:.0f} ms, the p99 under {REQUIRED.p99_ms:.0f} ms;",
        f"of new clients of a broker that recovers, under {REQUIRED_ANSWER_MS:.0f} ms.",
        *([] if scale == 1 else [f"All sizes scaled by {scale}."]),
        "",
        "| scenario | broker | probe |  answers | p50 ms | p99 ms | longest ms | memory MiB |",
        "|---|---|---|---|---|---|---|---|",
        *map(str, rows),
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lag", description=__doc__)
    add_option(parser, "scenario")
    parser.add_argument("--peer", choices=[peer.name for peer in PEERS], help="measure only this broker")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the scenarios (default: %(default)s)")
    parser.add_argument("--explain", action="store_true", help="print the long turns in the gateway's log")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
