"""The plot of a soak: memory, files and threads, disk, waits and turns, over time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib

from benchmarks.soak.sampling import Sample

matplotlib.use("Agg")

from matplotlib import pyplot

#: The panels, from top to bottom: label, and fields with their names.
_PANELS: Final = (
    ("MiB", {"resident": "resident memory", "in_use": "memory in use"}),
    ("count", {"files": "open files", "threads": "threads", "connections": "connections", "queues": "queues"}),
    ("MiB", {"disk": "data directory"}),
    (
        "ms",
        {
            "wait_longest": "longest wait in 10 s",
            "wait_longest_own": "without waits for a processor",
            "wait_p99": "99th percentile",
        },
    ),
    ("% of a core", {"cpu_percent": "broker's CPU"}),
)


def draw(samples: Sequence[Sample], title: str, file: Path) -> None:
    """Write the plot; the file name's suffix determines the format."""
    minutes = [sample.second / 60 for sample in samples]
    figure, panels = pyplot.subplots(len(_PANELS), 1, sharex=True, figsize=(10, 12), layout="constrained")
    for panel, (label, names) in zip(panels, _PANELS, strict=True):
        for field, name in names.items():
            panel.plot(minutes, [getattr(sample, field) for sample in samples], label=name, linewidth=0.8)
        panel.set_ylabel(label)
        panel.set_ylim(bottom=0)
        panel.legend(loc="lower right", fontsize="small")
        panel.grid(alpha=0.3)
    panels[-1].set_xlabel("minutes")
    figure.suptitle(title)
    figure.savefig(file)
    pyplot.close(figure)
