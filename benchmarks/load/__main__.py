"""The command: ``python -m benchmarks.load [--quick] [--only NAME] [--peer NAME]``."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

from benchmarks.load.choosing import add_option, is_chosen
from benchmarks.load.compare import Comparison
from benchmarks.load.floor import measure_floors
from benchmarks.load.host import describe
from benchmarks.load.idle import IDLENESS, raise_descriptor_limit
from benchmarks.load.mqtt import workloads as mqtt
from benchmarks.load.overhead_limits import OVER_QUEUES, OVERHEAD_LIMITS
from benchmarks.load.peers import MANAGED, PEERS, SUBJECT, Peer
from benchmarks.load.report import report
from benchmarks.load.results import Results
from benchmarks.load.solo_workloads import PARTS, SOLO_WORKLOADS
from benchmarks.load.stomp import workloads as stomp
from benchmarks.load.workloads import AMQP, WORKLOADS, Workload

RESULTS: Final = Path(__file__).parent.parent / "results"
#: The compared protocols.
COMPARED: Final = (*WORKLOADS, *mqtt.WORKLOADS, *stomp.WORKLOADS)
BACKLOG: Final = "backlog"
#: Every name that ``--only`` accepts.
NAMES: Final = (
    *(each.name for each in (*COMPARED, *OVER_QUEUES)),
    *(each.name for each in SOLO_WORKLOADS),
    *(each.name for each in PARTS),
    *(each.name for each in IDLENESS),
    BACKLOG,
)


@dataclass(frozen=True, slots=True)
class Length:
    """The length of measurements; a peer's own figures bound the last two."""

    seconds: float
    repetitions: int
    idle_connections: int = sys.maxsize
    backlog_messages: int = sys.maxsize

    def __str__(self) -> str:
        return f"{self.seconds} s a run, median of {self.repetitions}."


QUICK: Final = Length(seconds=0.4, repetitions=1, idle_connections=500, backlog_messages=20_000)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected benchmarks, print the results, and save complete ones; return the exit status."""
    options = _options().parse_args(arguments)
    if options.list:
        print("\n".join(NAMES))
        return 0
    peers = _present([peer for peer in PEERS if options.peer in (None, peer.name)])
    if not peers:
        return 2
    raise_descriptor_limit()
    # On SIGTERM, still stop the brokers that were started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    length = QUICK if options.quick else Length(options.seconds, options.repetitions)
    workloads = [each for each in COMPARED if is_chosen(each.name, options.only)]
    floors = measure_floors() if any(each.protocol == AMQP for each in workloads) else []
    results = _measure(peers, options, workloads, length)
    host = describe(options.directory)
    text = report(results, workloads, [peer.name for peer in peers], host, floors, str(length))
    print(f"\n{text}")
    is_part = options.quick or options.only or len(peers) < len(PEERS) or results.failures
    if output := options.output or (None if is_part else RESULTS / f"{date.today()}-{host.slug}.md"):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(f"# Side by side, {date.today()}\n\n{text}")
        print(f"written to {output}")
    return 1 if results.failures else 0


def _measure(
    peers: Sequence[Peer], options: argparse.Namespace, workloads: Sequence[Workload], length: Length
) -> Results:
    comparison = Comparison(peers, options.directory, say=lambda line: print(line, flush=True))
    if workloads:
        comparison.run_workloads(workloads, length.seconds, length.repetitions)
    if SUBJECT in peers:
        over_queues = [each for each in OVER_QUEUES if is_chosen(each.name, options.only)]
        if over_queues:
            comparison.run_overhead_limits(SUBJECT, OVERHEAD_LIMITS, over_queues, length.seconds, length.repetitions)
        comparison.run_solo_workloads(MANAGED, [each for each in SOLO_WORKLOADS if is_chosen(each.name, options.only)])
        comparison.run_parts([each for each in PARTS if is_chosen(each.name, options.only)])
    for idleness in IDLENESS:
        if is_chosen(idleness.name, options.only):
            comparison.measure_idle(idleness, length.idle_connections)
    if is_chosen(BACKLOG, options.only):
        comparison.measure_backlog(length.backlog_messages)
    return comparison.results


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description="Brokers side by side under load.")
    parser.add_argument("--quick", action="store_true", help="a quick run of two minutes, too short to quote")
    add_option(parser)
    parser.add_argument("--list", action="store_true", help="print the names, measure nothing")
    parser.add_argument("--peer", choices=[peer.name for peer in PEERS], help="measure only this broker")
    parser.add_argument("--seconds", type=float, default=1.2, help="length of one run (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each workload (default: %(default)s)")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="data directory of the brokers"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the report to this file, complete or not")
    return parser


def _present(peers: Sequence[Peer]) -> Sequence[Peer]:
    """Return the peers this machine can run; print why others are omitted."""
    present = []
    for peer in peers:
        if reason := peer.absence():
            print(f"{peer.name} is omitted: {reason}")
        else:
            present.append(peer)
    return present


if __name__ == "__main__":
    sys.exit(main())
