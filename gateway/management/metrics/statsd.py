"""Metrics for a StatsD server: lines with DogStatsD's tags, in packets, collected in slices."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import Metric

#: The largest packet, which fits into a frame of Ethernet, in bytes.
LARGEST_PACKET: Final = 1400

_COUNTERS: Final = ("counter", "histogram", "summary")
_UNSAFE: Final = str.maketrans({"|": "_", ",": "_", "#": "_", "\n": "_"})


class StatsdPusher:
    """Sends what changed since the last time: gauges with their values, counters with their increase.

    ``collect`` returns the metrics of the node, ``send`` sends one packet and never waits. Buckets of distributions are
    not sent, their counts and sums are.
    """

    def __init__(self, collect: Callable[[], Iterable[Metric | None]], send: Callable[[bytes], None]) -> None:
        self._collect = collect
        self._send = send
        self._sent: dict[str, float] = {}

    def pushing(self) -> Iterator[None]:
        """Return the steps of one send."""
        packet: list[str] = []
        size = 0
        for metric in self._collect():
            for line in () if metric is None else self._lines(metric):
                length = len(line.encode()) + 1
                if size + length > LARGEST_PACKET and packet:
                    self._send("\n".join(packet).encode())
                    packet, size = [], 0
                packet.append(line)
                size += length
            yield
        if packet:
            self._send("\n".join(packet).encode())

    def _lines(self, metric: Metric) -> Iterator[str]:
        for sample in metric.samples:
            if "le" in sample.labels:
                continue
            tags = ",".join(f"{name}:{value.translate(_UNSAFE)}" for name, value in sorted(sample.labels.items()))
            suffix = f"|#{tags}" if tags else ""
            if metric.type not in _COUNTERS:
                yield f"{sample.name}:{sample.value:.12g}|g{suffix}"
                continue
            key = sample.name + suffix
            increase = sample.value - self._sent.get(key, 0.0)
            self._sent[key] = sample.value
            if increase > 0:
                yield f"{sample.name}:{increase:.12g}|c{suffix}"
