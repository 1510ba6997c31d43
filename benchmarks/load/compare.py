"""Runs the workloads on all peers in turn and keeps each peer's median run."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.load.backlog import Backlog, measure_backlog
from benchmarks.load.client import BrokerRefused
from benchmarks.load.drive import Stalled
from benchmarks.load.idle import IdleMemory, measure_idle
from benchmarks.load.measurement import Lost, Measurement
from benchmarks.load.peers import Broker, Peer
from benchmarks.load.processes import NotListening
from benchmarks.load.publisher import NotConfirmed
from benchmarks.load.roundtrip import measure_confirm_round_trip, measure_round_trip
from benchmarks.load.stream import measure_stream
from benchmarks.load.workloads import Measure, Workload

Outcome = TypeVar("Outcome")

#: What a broker can do wrong without spoiling the rest of the run. OSError covers lost connections and time-outs.
FAILURES: Final = (BrokerRefused, Lost, NotConfirmed, NotListening, Stalled, OSError)

RUN: Final[Mapping[Measure, Callable[[Broker, Workload, float], Measurement]]] = {
    Measure.STREAM: measure_stream,
    Measure.ROUND_TRIP: measure_round_trip,
    Measure.CONFIRM_ROUND_TRIP: measure_confirm_round_trip,
}


@dataclass(slots=True)
class Results:
    """Everything measured, by peer name; filled while the run goes on."""

    products: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[Workload, str], list[Measurement]] = field(default_factory=dict)
    idle: dict[str, IdleMemory] = field(default_factory=dict)
    backlogs: dict[str, Backlog] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def median(self, workload: Workload, peer: str) -> Measurement | None:
        """The run in the middle, by what its workload is about; None when there was none."""
        runs = sorted(self.runs.get((workload, peer), []), key=lambda run: figure_of_merit(workload, run))
        return runs[len(runs) // 2] if runs else None


def figure_of_merit(workload: Workload, run: Measurement) -> float:
    """What is compared, the less the better: CPU a message for streams, the median time for round trips."""
    round_trip = run.delivery or run.confirm
    if workload.measure is Measure.STREAM or round_trip is None:
        return run.broker_us
    return round_trip.p50_ms


class Comparison:
    """One benchmark run over some peers; owns its ``results``."""

    def __init__(self, peers: Sequence[Peer], directory: Path, say: Callable[[str], None]) -> None:
        self.results = Results()
        self._peers = peers
        self._directory = directory
        self._say = say

    def run_workloads(self, workloads: Sequence[Workload], seconds: float, repetitions: int) -> None:
        """Measure each workload on each peer in turn, so many times: a slow minute strikes all peers alike."""
        with ExitStack() as stack:
            launches = [self._attempt(peer.name, partial(self._launch, stack, peer)) for peer in self._peers]
            brokers = [broker for broker in launches if broker is not None]
            self.results.products.update((broker.peer, broker.product) for broker in brokers)
            for workload in workloads:
                for _ in range(repetitions):
                    for broker in brokers:
                        self._run_workload(broker, workload, seconds)

    def measure_idle(self, most: int) -> None:
        """Measure the memory of idle connections, on fresh brokers."""
        for peer in self._peers:
            connections = min(peer.idle_connections, most)
            with self._fresh_directory() as directory:
                idle = self._attempt(f"idle, {peer.name}", partial(measure_idle, peer, directory, connections))
            if idle is not None:
                self.results.idle[peer.name] = idle
                self._say(f"{idle.connections} idle connections, {peer.name}: {idle.kib_each:.1f} KiB each")

    def measure_backlog(self, most: int) -> None:
        """Measure a long queue's life, on fresh brokers."""
        for peer in self._peers:
            messages = min(peer.backlog_messages, most)
            with self._fresh_directory() as directory:
                backlog = self._attempt(f"backlog, {peer.name}", partial(measure_backlog, peer, directory, messages))
            if backlog is not None:
                self.results.backlogs[peer.name] = backlog
                self._say(f"backlog of {messages}, {peer.name}: first delivery after {backlog.first_delivery_s:.1f} s")

    def _run_workload(self, broker: Broker, workload: Workload, seconds: float) -> None:
        label = f"{workload.name}, {broker.peer}"
        run = self._attempt(label, partial(RUN[workload.measure], broker, workload, seconds))
        if run is not None:
            self.results.runs.setdefault((workload, broker.peer), []).append(run)
            self._say(
                f"{label}: {run.rate:,.0f} msg/s, {run.broker_us:.2f} µs CPU a message"
                f" (generator {run.generator_us:.2f})"
            )

    def _attempt(self, label: str, measure: Callable[[], Outcome]) -> Outcome | None:
        """Measure; a broker's failure is noted, and the run goes on."""
        try:
            return measure()
        except FAILURES as failure:
            self.results.failures.append(f"{label}: {type(failure).__name__}: {failure}")
            self._say(self.results.failures[-1])
            return None

    def _launch(self, stack: ExitStack, peer: Peer) -> Broker:
        """Start a peer on a directory of its own; both are gone when the stack ends."""
        directory = stack.enter_context(self._fresh_directory())
        return stack.enter_context(peer.launch(directory))

    @contextmanager
    def _fresh_directory(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="load-", dir=self._directory) as name:
            yield Path(name)
