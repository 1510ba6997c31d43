"""Hours of steady traffic and churn on one broker: ``python -m benchmarks.soak --hours 2 --output DIRECTORY``.

It writes samples of the broker (CSV), a plot and a report. It returns 1 if memory grows, a confirmed message is
lost, a round of an activity fails, a probe client waits too long, or anything is left behind at the end.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from threading import Event

from benchmarks.load.gateway import launch_all
from benchmarks.load.host import describe
from benchmarks.load.running import Broker
from benchmarks.soak.broker_under_test import BrokerUnderTest
from benchmarks.soak.churn import CHURN
from benchmarks.soak.ledger import Ledger
from benchmarks.soak.operators import OPERATED, PLUGIN_VHOST, PLUGINS
from benchmarks.soak.plot import draw
from benchmarks.soak.sampling import Sample, Sampler, header, line, probes
from benchmarks.soak.traffic import STEADY
from benchmarks.soak.verdict import WARM_UP_S, Finding, findings
from benchmarks.soak.work import ActivityThreads


def main() -> int:
    """Run the soak, write the results, and return the exit status."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory, _launched(Path(directory)) as broker:
        target = BrokerUnderTest(broker.ports, broker.pid, Ledger())
        with probes(target) as others:
            sampler = Sampler(target, Path(directory) / "data", others)
            return _soak(options, broker, target, sampler)


@contextmanager
def _launched(directory: Path) -> Iterator[Broker]:
    """Run a broker whose virtual hosts enable plugins."""
    config = directory / "soak.toml"
    tables = [f'[vhosts."{vhost}".plugins.{plugin}]' for vhost in ("/", PLUGIN_VHOST) for plugin in PLUGINS]
    config.write_text("\n".join(tables) + "\n")
    with launch_all(directory, config) as broker:
        yield broker


def _soak(options: argparse.Namespace, broker: Broker, target: BrokerUnderTest, sampler: Sampler) -> int:
    threads = ActivityThreads(target, {**STEADY, **CHURN, **OPERATED})
    time.sleep(2)
    before = sampler.sample()
    threads.start()
    samples = _sampled(options, sampler)
    for name in threads.stop(120):
        target.ledger.ended(name, "the last round did not end")
    time.sleep(options.rest)
    after = sampler.sample()
    found = findings(before, samples, after, target.ledger.failures, options.warm_up)
    report = _report(broker, target, samples, found)
    title = f"{samples[-1].second / 3600:.1f} hours, {after.confirmed:,} messages confirmed"
    draw(samples, title, options.output / "soak.svg")
    (options.output / "soak.md").write_text(report)
    print(report, *target.ledger.failures[:100], sep="\n", flush=True)
    return 0 if all(each.is_met for each in found) else 1


def _sampled(options: argparse.Namespace, sampler: Sampler) -> list[Sample]:
    """Take samples until the end, or until SIGTERM or SIGINT; each is written at once."""
    samples: list[Sample] = []
    is_over = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: is_over.set())
    end = time.monotonic() + options.hours * 3600
    with (options.output / "soak.csv").open("w", buffering=1) as file:
        print(header(), file=file)
        while time.monotonic() < end and not is_over.is_set():
            is_over.wait(options.interval)
            samples.append(sampler.sample())
            print(line(samples[-1]), file=file)
    return samples


def _report(broker: Broker, target: BrokerUnderTest, samples: Sequence[Sample], found: Sequence[Finding]) -> str:
    ledger = target.ledger
    rows = [
        f"| {name} | {count:,} | {ledger.confirmed[name]:,} | {ledger.arrived[name]:,} |"
        for name, count in sorted(ledger.rounds.items())
    ]
    last = samples[-1]
    cpu = sum(sample.cpu_percent for sample in samples) / len(samples)
    lines = [
        f"# A soak of {last.second / 3600:.1f} hours, {date.today()}",
        "",
        f"{broker.product}; {describe(Path(tempfile.gettempdir()))}. The broker took {cpu:.0f} % of a core.",
        "",
        "| requirement | found | at most | met |",
        "|---|---|---|---|",
        *map(str, found),
        "",
        f"The longest turn took {last.turn_longest:.0f} ms, by {last.turn_longest_cause or 'many small parts'}.",
        "",
        "| activity | rounds | confirmed | arrived |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0, help="duration (default: %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("build/soak"), metavar="DIRECTORY", help="directory of the results"
    )
    parser.add_argument("--directory", type=Path, help="data directory of the broker (default: a temporary one)")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between samples (default: %(default)s)")
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S, help="seconds before memory is judged")
    parser.add_argument("--rest", type=float, default=30.0, help="seconds at the end for expiry")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
