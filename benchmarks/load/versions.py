"""Two checkouts side by side: ``python -m benchmarks.load.versions --before DIR --after DIR [--only NAME]``.

Both brokers run at the same time and take turns, and so do the workloads' repetitions: a slow minute of the machine
affects both. A checkout with a ``.compiled`` directory (``make wheel``) runs compiled, the other one as source.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.load.amqp.client import amqp_product
from benchmarks.load.choosing import add_option, is_chosen
from benchmarks.load.compare import Comparison
from benchmarks.load.gateway import LISTENERS, command, free_ports
from benchmarks.load.host import describe
from benchmarks.load.mqtt import workloads as mqtt
from benchmarks.load.peers import Peer
from benchmarks.load.results import Results
from benchmarks.load.running import Broker, running
from benchmarks.load.stomp import workloads as stomp
from benchmarks.load.tables import Row, table
from benchmarks.load.workloads import AMQP, MQTT, STOMP, WEB_STOMP, WORKLOADS, Workload

#: The greatest accepted ratio of a workload's CPU time per message, after to before.
ACCEPTED: Final = 1.03
BEFORE, AFTER = "before", "after"
PROTOCOLS: Final = (AMQP, MQTT, STOMP, WEB_STOMP)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of the project, and the settings its brokers get."""

    name: str
    root: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_compiled(self) -> bool:
        """Return whether it has compiled packages."""
        return (self.root / ".compiled").is_dir()

    @property
    def peer(self) -> Peer:
        """The peer that runs this checkout."""
        return Peer(self.name, lambda: None, self.launch, set(PROTOCOLS), {}, backlog_messages=0)

    @contextmanager
    def launch(self, directory: Path) -> Iterator[Broker]:
        """Run its broker with the data in this directory."""
        ports = free_ports(*PROTOCOLS)
        options = [word for name, value in self.settings.items() for word in ("--set", f"{name}={value}")]
        started = command(directory, ports, options, known=self._known_listeners())
        with running(self.name, started, self._environment(), directory, ports, self._product, 60.0) as broker:
            yield broker

    def _known_listeners(self) -> Sequence[str]:
        """Return the listeners that this version has; it refuses settings of others."""
        sample = (self.root / "etc" / "gateway.toml").read_text()
        return [listener for listener in LISTENERS if f"[{listener}]" in sample]

    def _environment(self) -> dict[str, str]:
        """Return an environment in which Python finds this checkout's packages first."""
        parts = ("", "plugins", "protocols", "storage", "pipeline")
        compiled = [self.root / ".compiled"] if self.is_compiled else []
        path = [*compiled, *(self.root / part for part in parts)]
        return os.environ | {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(map(str, path))}

    def _product(self, ports: Mapping[str, int]) -> str:
        return f"{amqp_product(ports)}, {'compiled' if self.is_compiled else 'as source'}"


def ratios(results: Results, workload: Workload) -> Sequence[float]:
    """Return the ratios of broker CPU per message, after to before, of runs that are adjacent in time."""
    pairs = zip(results.runs.get((workload, AFTER), ()), results.runs.get((workload, BEFORE), ()), strict=False)
    return [after.broker_us / before.broker_us for after, before in pairs]


def rows(results: Results, workloads: Sequence[Workload]) -> Iterator[Row]:
    """Yield the head, and a row for each workload that both versions ran.

    The ratio of the least times is less affected by other work on the machine than the median of the ratios.
    """
    yield "workload", BEFORE, AFTER, "median of ratios", "ratio of least", f"at most {ACCEPTED}"
    for workload in workloads:
        found = ratios(results, workload)
        if not found:
            continue
        before, after = ([run.broker_us for run in results.runs[workload, name]] for name in (BEFORE, AFTER))
        least = min(after) / min(before)
        yield (
            workload.name,
            f"{median(before):.2f}",
            f"{median(after):.2f}",
            f"{median(found):.3f}",
            f"{least:.3f}",
            "yes" if min(median(found), least) <= ACCEPTED else "NO",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both checkouts and print the table; return 1 if a broker failed a workload."""
    options = _options().parse_args(arguments)
    wanted = partial(is_chosen, only=options.only)
    workloads = [each for each in (*WORKLOADS, *mqtt.WORKLOADS, *stomp.WORKLOADS) if wanted(each.name)]
    checkouts = [Checkout(BEFORE, options.before), Checkout(AFTER, options.after, dict(options.set or ()))]
    comparison = Comparison(
        [checkout.peer for checkout in checkouts], options.directory, say=lambda line: print(line, flush=True)
    )
    comparison.run_workloads(workloads, options.seconds, repetitions=0)  # do both start?
    results = comparison.results
    if not results.failures:
        comparison.run_workloads(workloads, options.seconds, options.repetitions)
    parts = [
        f"Machine: {describe(options.directory)}.",
        " ".join(f"{name} is {product}." for name, product in results.products.items()),
        f"Broker CPU µs per message; {options.repetitions} runs of {options.seconds} s that alternate.",
        "\n".join(table(rows(results, workloads))),
        *results.failures,
    ]
    text = "\n\n".join(parts)
    print(f"\n{text}")
    if options.output:
        options.output.write_text(f"{text}\n")
    return 1 if results.failures else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.versions", description="Two checkouts side by side under load."
    )
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="the checkout to compare with")
    parser.add_argument("--after", type=Path, required=True, metavar="DIR", help="the checkout in question")
    parser.add_argument("--set", action="append", type=_setting, metavar="NAME=VALUE", help="a setting of the latter")
    add_option(parser, "workload")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of one run (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=7, help="runs of each workload (default: %(default)s)")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="data directory of the brokers"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the table to this file, too")
    return parser


def _setting(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
