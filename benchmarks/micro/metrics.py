"""The cost of scrapes: CPU time of each path with many queues, and its longest step, which a turn cannot divide.

Run it by hand: ``python -m benchmarks.micro.metrics``. It prints one row for each path.
"""

import gc
from collections.abc import Callable, Iterator
from time import process_time
from typing import Final

from gateway.management.metrics.exposition import Exposition
from gateway.management.metrics.scrapes import (
    detailed_scrape,
    encoded_scrape,
    exporter_scrape,
    node_scrape,
    per_object_scrape,
)
from tests.management.metrics.scraper import Scraper

QUEUES: Final = (1_000, 50_000)


def main() -> None:
    """Measure each path with few and with many queues."""
    print(f"{'queues':>8} {'path':<45} {'CPU ms':>8} {'longest step ms':>16} {'MB':>6}")
    for queues in QUEUES:
        scraper = Scraper()
        for number in range(queues):
            scraper.gateway.vhost.declare_queue(f"queue-{number}")
        gc.collect()
        gc.freeze()  # as a node does
        for path, pieces in _paths(scraper).items():
            cpu_s, longest_s, size = _measured(pieces)
            print(f"{queues:>8} {path:<45} {cpu_s * 1e3:>8.0f} {longest_s * 1e3:>16.2f} {size / 1e6:>6.1f}")


def _paths(scraper: Scraper) -> dict[str, Callable[[], Iterator[bytes]]]:
    sources, exposition = scraper.sources, Exposition("")
    vhosts = list(scraper.gateway.broker.vhost_by_name.values())
    return {
        "/metrics": lambda: encoded_scrape(exposition, node_scrape(sources)),
        "/metrics/detailed?family=queue_coarse_metrics": lambda: detailed_scrape(
            sources, exposition, ["queue_coarse_metrics"], vhosts
        ),
        "/metrics/per-object": lambda: per_object_scrape(sources, exposition),
        "/metrics/exporter": lambda: exporter_scrape(sources, exposition),
    }


def _measured(pieces: Callable[[], Iterator[bytes]]) -> tuple[float, float, int]:
    """Return the CPU times of a scrape and of its longest step in seconds, and its size in bytes."""
    starts_s, longest_s, size = process_time(), 0.0, 0
    before_s = starts_s
    for piece in pieces():
        now_s = process_time()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
        size += len(piece)
    return process_time() - starts_s, longest_s, size


if __name__ == "__main__":
    main()
