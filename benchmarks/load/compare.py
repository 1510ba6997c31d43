"""Runs the workloads on all peers in turn and keeps each peer's median run."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.load.backlog import measure_backlog
from benchmarks.load.client_rig import BrokerRefused, Lost
from benchmarks.load.drive import Stalled
from benchmarks.load.figure import Figure
from benchmarks.load.idle import Idleness, measure_idle
from benchmarks.load.measurement import Measurement
from benchmarks.load.mqtt.retaining import measure_retaining
from benchmarks.load.overhead_limits import OverheadLimit
from benchmarks.load.peers import Peer
from benchmarks.load.processes import NotListening
from benchmarks.load.publisher import NotConfirmed
from benchmarks.load.results import Results
from benchmarks.load.rounds import measure_rounds
from benchmarks.load.roundtrip import measure_confirm_round_trip, measure_round_trip
from benchmarks.load.running import Broker
from benchmarks.load.solo_workloads import Part, SoloWorkload
from benchmarks.load.stream import measure_stream
from benchmarks.load.waiting import measure_waiting
from benchmarks.load.workloads import Measure, Workload

Outcome = TypeVar("Outcome")

#: Broker failures that end one measurement only. OSError covers lost connections and time-outs.
FAILURES: Final = (BrokerRefused, Lost, NotConfirmed, NotListening, Stalled, OSError)

RUN: Final[Mapping[Measure, Callable[[Broker, Workload, float], Measurement]]] = {
    Measure.STREAM: measure_stream,
    Measure.WAITING: measure_waiting,
    Measure.ROUND_TRIP: measure_round_trip,
    Measure.CONFIRM_ROUND_TRIP: measure_confirm_round_trip,
    Measure.ROUNDS: measure_rounds,
    Measure.RETAINING: measure_retaining,
}


class Comparison:
    """One benchmark run over some peers; owns its ``results``."""

    def __init__(self, peers: Sequence[Peer], directory: Path, say: Callable[[str], None]) -> None:
        self.results = Results()
        self._peers = peers
        self._directory = directory
        self._say = say

    def run_workloads(self, workloads: Sequence[Workload], seconds: float, repetitions: int) -> None:
        """Measure each workload on each peer in turn, repeatedly, so that a slow minute affects all peers alike."""
        protocols = {workload.protocol for workload in workloads}
        peers = [peer for peer in self._peers if peer.protocols & protocols]
        with self._running(peers) as brokers:
            for workload in workloads:
                for _ in range(repetitions):
                    for broker in brokers:
                        if workload.protocol in broker.ports:
                            self._run_workload(broker, workload, seconds)

    def run_overhead_limits(
        self,
        peer: Peer,
        overhead_limits: Sequence[OverheadLimit],
        workloads: Sequence[Workload],
        seconds: float,
        repetitions: int,
    ) -> None:
        """Measure each workload over a plain queue and over each kind in turn, repeatedly, on one peer."""
        with self._running([peer]) as brokers:
            for broker in brokers:
                for workload in workloads:
                    turns = [workload, *(overhead_limit.of(workload) for overhead_limit in overhead_limits)]
                    for each in turns * repetitions:
                        self._run_workload(broker, each, seconds)

    def run_solo_workloads(self, peer: Peer, workloads: Sequence[SoloWorkload]) -> None:
        """Measure each workload on a fresh broker."""
        for workload in workloads:
            with self._running([peer]) as brokers:
                for broker in brokers:
                    self._keep_figures(workload.name, partial(workload.measure, broker))

    def run_parts(self, parts: Sequence[Part]) -> None:
        """Measure each part in this process."""
        for part in parts:
            self._keep_figures(part.name, part.measure)

    def measure_idle(self, idleness: Idleness, most: int) -> None:
        """Measure the memory of idle connections, on fresh brokers that speak the protocol."""
        for peer in self._peers:
            connections = min(peer.idle_connections.get(idleness.protocol, 0), most)
            if not connections:
                continue
            label = f"{idleness.name}, {peer.name}"
            with self._fresh_directory() as directory:
                idle = self._attempt(label, partial(measure_idle, peer, directory, idleness, connections))
            if idle is not None:
                self.results.idle[idleness.protocol, peer.name] = idle
                self._say(f"{label}: {idle.connections} connections, {idle.kib_each:.1f} KiB each")

    def measure_backlog(self, most: int) -> None:
        """Measure the life of a long queue, on fresh brokers."""
        for peer in self._peers:
            messages = min(peer.backlog_messages, most)
            if not messages:
                continue
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

    def _keep_figures(self, name: str, measure: Callable[[], Sequence[Figure]]) -> None:
        figures = self._attempt(name, measure)
        if figures is not None:
            self.results.figures[name] = figures
            for figure in figures:
                self._say(f"{name}: {figure.name}: {figure.measured}")

    def _attempt(self, label: str, measure: Callable[[], Outcome]) -> Outcome | None:
        """Measure; record a broker's failure and continue."""
        try:
            return measure()
        except FAILURES as failure:
            self.results.failures.append(f"{label}: {type(failure).__name__}: {failure}")
            self._say(self.results.failures[-1])
            return None

    @contextmanager
    def _running(self, peers: Sequence[Peer]) -> Iterator[Sequence[Broker]]:
        """Yield the peers that start, each with its own directory."""
        with ExitStack() as stack:
            launches = [self._attempt(peer.name, partial(self._launch, stack, peer)) for peer in peers]
            brokers = [broker for broker in launches if broker is not None]
            self.results.products.update((broker.peer, broker.product) for broker in brokers)
            yield brokers

    def _launch(self, stack: ExitStack, peer: Peer) -> Broker:
        """Start a peer in its own directory; both are removed when the stack ends."""
        directory = stack.enter_context(self._fresh_directory())
        return stack.enter_context(peer.launch(directory))

    @contextmanager
    def _fresh_directory(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="load-", dir=self._directory) as name:
            yield Path(name)
