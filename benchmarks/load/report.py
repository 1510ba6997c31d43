"""Results as Markdown tables, aligned so that they read well on a terminal too."""

from collections.abc import Iterable, Sequence
from typing import Final

from benchmarks.load.backlog import Backlog
from benchmarks.load.compare import Results, figure_of_merit
from benchmarks.load.floor import Floor
from benchmarks.load.host import Host
from benchmarks.load.latency import Latency
from benchmarks.load.workloads import Measure, Workload

#: The peer that owes something; the others are there to compare with.
SUBJECT: Final = "gateway"
#: What it owes: KiB an idle connection, MB resident with the backlog, seconds to restart.
IDLE_KIB, BACKLOG_MB, RESTART_S = 20.0, 300.0, 10.0
#: Disk space after a partial refill may exceed the full backlog's by this factor:
#: pages are reused, but not in perfect order.
REUSE: Final = 1.05

Row = Sequence[str]


def report(
    results: Results,
    workloads: Sequence[Workload],
    peers: Sequence[str],
    host: Host,
    floors: Sequence[Floor],
    conditions: str,
) -> str:
    """Everything measured, with what is owed and whether it is met."""
    products = "".join(f"{peer} is {product}. " for peer, product in results.products.items())
    parts = [[f"Machine: {host}.", f"{products}{conditions}", f"Generator alone: {', '.join(map(str, floors))}."]]
    measured = [each for each in workloads if any((each, peer) in results.runs for peer in peers)]
    if measured:
        parts.append(["## Throughput and CPU", "", *_table(_throughput(results, measured, peers))])
        parts.append(["## Latency: p50 / p99 in ms", "", *_table(_latency(results, measured, peers))])
    if results.idle:
        parts.append(["## Memory of idle connections", "", *_table(_idle(results, peers))])
    if results.backlogs:
        parts.append(["## Backlog of persistent 1 KiB messages", "", *_table(_backlog(results, peers))])
    if results.failures:
        parts.append(["## Failures", "", *(f"- {failure}" for failure in results.failures)])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _throughput(results: Results, workloads: Iterable[Workload], peers: Sequence[str]) -> Iterable[Row]:
    """Per peer: messages a second, broker CPU and generator CPU a message; then the factor."""
    columns = (f"{peer} {unit}" for peer in peers for unit in ("msg/s", "µs CPU/msg", "(generator)"))
    yield ["workload", *columns, "factor", "owed", "met"]
    for workload in workloads:
        cells = []
        for peer in peers:
            run = results.median(workload, peer)
            cells += [f"{run.rate:,.0f}", f"{run.broker_us:.2f}", f"{run.generator_us:.2f}"] if run else ["-"] * 3
        yield [workload.name, *cells, *_verdict(results, workload, peers)]


def _verdict(results: Results, workload: Workload, peers: Sequence[str]) -> Row:
    """How many times the first peer is better than the second, what is owed, and whether it is met."""
    runs = [results.median(workload, peer) for peer in peers[:2]]
    what = "CPU" if workload.measure is Measure.STREAM else "p50"
    owed = f"{workload.required:.0f}x {what}"
    if len(runs) < 2 or runs[0] is None or runs[1] is None:
        return ["-", owed, "-"]
    factor = figure_of_merit(workload, runs[1]) / figure_of_merit(workload, runs[0])
    return [f"{factor:.2f}", owed, _met(factor >= workload.required)]


def _latency(results: Results, workloads: Iterable[Workload], peers: Sequence[str]) -> Iterable[Row]:
    yield ["workload", "window", *(f"{peer} {what}" for peer in peers for what in ("delivery", "confirm"))]
    for workload in workloads:
        cells = []
        for peer in peers:
            run = results.median(workload, peer)
            cells += [_percentiles(run.delivery), _percentiles(run.confirm)] if run else ["-"] * 2
        yield [workload.name, f"{workload.window:,}", *cells]


def _idle(results: Results, peers: Sequence[str]) -> Iterable[Row]:
    yield ["peer", "connections", "MB before", "MB with them", "KiB each", "owed", "met"]
    for peer in peers:
        if idle := results.idle.get(peer):
            figures = [f"{idle.connections:,}", _mb(idle.baseline_bytes), _mb(idle.resident_bytes)]
            owed = [f"< {IDLE_KIB:.0f}", _met(idle.kib_each < IDLE_KIB)] if peer == SUBJECT else ["", ""]
            yield [peer, *figures, f"{idle.kib_each:.1f}", *owed]


def _backlog(results: Results, peers: Sequence[str]) -> Iterable[Row]:
    measured = [peer for peer in peers if peer in results.backlogs]
    columns = [_backlog_figures(results.backlogs[peer]) for peer in measured]
    yield ["", *measured, "owed", "met"]
    owed = _backlog_owed(results.backlogs[SUBJECT]) if SUBJECT in measured else {}
    for name in columns[0]:
        yield [name, *(column[name] for column in columns), *owed.get(name, ("", ""))]


def _backlog_figures(backlog: Backlog) -> dict[str, str]:
    return {
        "messages": f"{backlog.messages:,}",
        "filled, msg/s": f"{backlog.fill_rate:,.0f}",
        "resident when filled, MB": _mb(backlog.filled_resident),
        "resident at most, MB": _mb(max(backlog.filled_peak, backlog.drained_peak)),
        "restart to first delivery, s": f"{backlog.first_delivery_s:.1f}",
        "drained, msg/s": f"{backlog.drain_rate:,.0f}",
        "disk when filled, MB": _mb(backlog.filled_disk),
        "disk when drained, MB": _mb(backlog.drained_disk),
        "disk when a fifth is refilled, MB": _mb(backlog.refilled_disk),
    }


def _backlog_owed(backlog: Backlog) -> dict[str, tuple[str, str]]:
    peak_mb = max(backlog.filled_peak, backlog.drained_peak) / 1e6
    return {
        "resident at most, MB": (f"< {BACKLOG_MB:.0f}", _met(peak_mb < BACKLOG_MB)),
        "restart to first delivery, s": (f"< {RESTART_S:.0f}", _met(backlog.first_delivery_s < RESTART_S)),
        "disk when a fifth is refilled, MB": ("reused", _met(backlog.refilled_disk <= backlog.filled_disk * REUSE)),
    }


def _table(rows: Iterable[Row]) -> list[str]:
    """Lay rows out as a Markdown table; the first is its head."""
    lines = [list(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]


def _percentiles(latency: Latency | None) -> str:
    return f"{latency.p50_ms:.3g} / {latency.p99_ms:.3g}" if latency else "-"


def _mb(octets: int) -> str:
    return f"{octets / 1e6:,.0f}"


def _met(is_met: bool) -> str:
    return "yes" if is_met else "NO"
