"""The report of all measurements."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from benchmarks.load.backlog import Backlog
from benchmarks.load.floor import Floor
from benchmarks.load.host import Host
from benchmarks.load.idle import IDLENESS
from benchmarks.load.overhead_limits import OVER_QUEUES, OVERHEAD_LIMITS, OverheadLimit
from benchmarks.load.peers import SUBJECT
from benchmarks.load.results import Results, figure_of_merit
from benchmarks.load.tables import Row, mb, met, percentiles, table
from benchmarks.load.workloads import Workload

#: Requirements with a backlog: MB of resident memory, seconds to restart.
BACKLOG_MB, RESTART_S = 300.0, 10.0
#: Disk space after a partial refill may exceed the full backlog's by this factor: pages are reused, but not in order.
REUSE: Final = 1.05


def report(
    results: Results,
    workloads: Sequence[Workload],
    peers: Sequence[str],
    host: Host,
    floors: Sequence[Floor],
    conditions: str,
) -> str:
    """Return the report of all results, with requirements and whether they are met."""
    products = "".join(f"{peer} is {product}. " for peer, product in results.products.items())
    parts = [[f"Machine: {host}.", f"{products}{conditions}"]]
    if floors:
        parts[0].append(f"Generator alone: {', '.join(map(str, floors))}.")
    for protocol in dict.fromkeys(workload.protocol for workload in workloads):
        spoken = [each for each in workloads if each.protocol == protocol]
        parts.extend(_side_by_side(results, spoken, peers, protocol.upper().replace("_", " ")))
    if any((limit.of(each), SUBJECT.name) in results.runs for limit in OVERHEAD_LIMITS for each in OVER_QUEUES):
        parts.append(["## What queues cost over a plain one: broker CPU a message", "", *table(_overheads(results))])
    if results.figures:
        parts.append(["## Work beside serving clients", "", *table(_figures(results))])
    if results.idle:
        parts.append(["## Memory of idle connections", "", *table(_idle(results))])
    if results.backlogs:
        parts.append(["## Backlog of persistent 1 KiB messages", "", *table(_backlog(results, peers))])
    if results.failures:
        parts.append(["## Failures", "", *(f"- {failure}" for failure in results.failures)])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _side_by_side(
    results: Results, workloads: Sequence[Workload], peers: Sequence[str], protocol: str
) -> Iterator[list[str]]:
    """Yield the workloads of one protocol, on the peers that ran any of them."""
    measured = [each for each in workloads if any((each, peer) in results.runs for peer in peers)]
    taking_part = [peer for peer in peers if any((each, peer) in results.runs for each in measured)]
    if measured:
        throughput = _throughput(results, measured, taking_part)
        yield [f"## Throughput and CPU over {protocol}", "", *table(throughput)]
        yield [f"## Latency over {protocol}: p50 / p99 in ms", "", *table(_latency(results, measured, taking_part))]


def _throughput(results: Results, workloads: Iterable[Workload], peers: Sequence[str]) -> Iterable[Row]:
    """Yield for each peer messages per second, broker CPU and generator CPU per message; then the factor."""
    columns = (f"{peer} {unit}" for peer in peers for unit in ("msg/s", "µs CPU/msg", "(generator)"))
    yield ["workload", *columns, "factor", "required", "met"]
    for workload in workloads:
        cells = []
        for peer in peers:
            run = results.median(workload, peer)
            cells += [f"{run.rate:,.0f}", f"{run.broker_us:.2f}", f"{run.generator_us:.2f}"] if run else ["-"] * 3
        yield [workload.name, *cells, *_verdict(results, workload, peers)]


def _verdict(results: Results, workload: Workload, peers: Sequence[str]) -> Row:
    """Return the factor of the first peer over the second, the requirement, and whether it is met."""
    runs = [results.median(workload, peer) for peer in peers[:2]]
    what = "p50" if workload.measure.is_of_time else "CPU"
    required = f"{workload.required:.0f}x {what}" if workload.required else ""
    if len(runs) < 2 or runs[0] is None or runs[1] is None:
        return ["-", required, "-"]
    factor = figure_of_merit(workload, runs[1]) / figure_of_merit(workload, runs[0])
    return [f"{factor:.2f}", required, met(factor >= workload.required if workload.required else None)]


def _latency(results: Results, workloads: Iterable[Workload], peers: Sequence[str]) -> Iterable[Row]:
    yield ["workload", "window", *(f"{peer} {what}" for peer in peers for what in ("delivery", "confirm"))]
    for workload in workloads:
        cells = []
        for peer in peers:
            run = results.median(workload, peer)
            cells += [percentiles(run.delivery), percentiles(run.confirm)] if run else ["-"] * 2
        yield [workload.name, f"{workload.window:,}", *cells]


def _overheads(results: Results) -> Iterable[Row]:
    yield ["workload", "queue", "plain, µs", "µs", "times", "required", "met"]
    for limit in OVERHEAD_LIMITS:
        for workload in OVER_QUEUES:
            yield from _overhead(results, limit, workload)


def _overhead(results: Results, limit: OverheadLimit, workload: Workload) -> Iterable[Row]:
    """Return the medians of both, and the median of the ratios of adjacent runs."""
    plain, special = results.median(workload, SUBJECT.name), results.median(limit.of(workload), SUBJECT.name)
    if plain and special:
        times = results.ratio(limit.of(workload), workload, SUBJECT.name)
        figures = [f"{plain.broker_us:.2f}", f"{special.broker_us:.2f}", f"{times:.2f}"]
        yield [
            workload.name,
            limit.kind.name,
            *figures,
            f"<= {limit.at_most}",
            met(times <= limit.at_most),
        ]


def _figures(results: Results) -> Iterable[Row]:
    yield ["work", "figure", "measured", "required", "met"]
    for workload, figures in results.figures.items():
        for figure in figures:
            yield [workload, figure.name, figure.measured, figure.required, met(figure.is_met)]


def _idle(results: Results) -> Iterable[Row]:
    yield ["protocol", "peer", "connections", "MB before", "MB with them", "KiB each", "required", "met"]
    required_kib = {idleness.protocol: idleness.required_kib for idleness in IDLENESS}
    for (protocol, peer), idle in results.idle.items():
        figures = [f"{idle.connections:,}", mb(idle.baseline_bytes), mb(idle.resident_bytes)]
        most = required_kib[protocol]
        required = [f"< {most:.0f}", met(idle.kib_each < most)] if most and peer == SUBJECT.name else ["", ""]
        yield [protocol, peer, *figures, f"{idle.kib_each:.1f}", *required]


def _backlog(results: Results, peers: Sequence[str]) -> Iterable[Row]:
    measured = [peer for peer in peers if peer in results.backlogs]
    columns = [_backlog_figures(results.backlogs[peer]) for peer in measured]
    yield ["", *measured, "required", "met"]
    required = _backlog_required(results.backlogs[SUBJECT.name]) if SUBJECT.name in measured else {}
    for name in columns[0]:
        yield [name, *(column[name] for column in columns), *required.get(name, ("", ""))]


def _backlog_figures(backlog: Backlog) -> dict[str, str]:
    return {
        "messages": f"{backlog.messages:,}",
        "filled, msg/s": f"{backlog.fill_rate:,.0f}",
        "filled, µs CPU a message": f"{backlog.fill_cpu_us:.1f}",
        "resident when filled, MB": mb(backlog.filled_resident),
        "resident at most, MB": mb(max(backlog.filled_peak, backlog.drained_peak)),
        "restart to first delivery, s": f"{backlog.first_delivery_s:.1f}",
        "drained, msg/s": f"{backlog.drain_rate:,.0f}",
        "drained, µs CPU a message": f"{backlog.drain_cpu_us:.1f}",
        "disk when filled, MB": mb(backlog.filled_disk),
        "disk when drained, MB": mb(backlog.drained_disk),
        "disk when a fifth is refilled, MB": mb(backlog.refilled_disk),
    }


def _backlog_required(backlog: Backlog) -> dict[str, tuple[str, str]]:
    peak_mb = max(backlog.filled_peak, backlog.drained_peak) / 1e6
    return {
        "resident at most, MB": (f"< {BACKLOG_MB:.0f}", met(peak_mb < BACKLOG_MB)),
        "restart to first delivery, s": (f"< {RESTART_S:.0f}", met(backlog.first_delivery_s < RESTART_S)),
        "disk when a fifth is refilled, MB": ("reused", met(backlog.refilled_disk <= backlog.filled_disk * REUSE)),
    }
