"""The requirements of a soak: no growth of memory, no loss, nothing left at the end, no long waits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.soak.sampling import COUNTS, Sample

#: Warm-up time during which memory may grow, in seconds: by then each name was used once.
WARM_UP_S: Final = 900.0

#: Longest permitted wait of a probe client, in milliseconds.
REQUIRED_WAIT_MS: Final = 100.0


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure with a maximum increase per hour."""

    name: str
    most_per_hour: float
    unit: str
    figure: Callable[[Sample], float]


BOUNDS: Final = (
    Bound("memory in use", 2.0, "MiB", lambda sample: sample.in_use),
    Bound("resident memory", 4.0, "MiB", lambda sample: sample.resident),
    Bound("open files", 2.0, "", lambda sample: sample.files),
    Bound("threads", 0.5, "", lambda sample: sample.threads),
    Bound("data directory", 32.0, "MiB", lambda sample: sample.disk),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One requirement, and the measured value."""

    name: str
    found: str
    required: str
    is_met: bool

    def __str__(self) -> str:
        return f"| {self.name} | {self.found} | {self.required} | {'yes' if self.is_met else 'NO'} |"


def slope_per_hour(samples: Sequence[Sample], figure: Callable[[Sample], float]) -> float:
    """Return how fast a figure rises: the median of the slopes between samples half the duration apart.

    Outliers do not affect it, up to half of the samples.
    """
    half = len(samples) // 2
    slopes = [
        (figure(later) - figure(sooner)) / (later.second - sooner.second) * 3600
        for sooner, later in zip(samples, samples[half:], strict=False)
        if later.second > sooner.second
    ]
    return median(slopes) if slopes else 0.0


def findings(
    before: Sample, samples: Sequence[Sample], after: Sample, failures: Sequence[str], warm_up_s: float = WARM_UP_S
) -> list[Finding]:
    """Judge the samples of a soak; ``before`` and ``after`` were taken without any activity."""
    warm = [sample for sample in samples if sample.second >= warm_up_s]
    found = [_rise(bound, warm) for bound in BOUNDS]
    lost = after.confirmed - after.arrived
    found.append(Finding("confirmed messages lost", f"{lost} of {after.confirmed:,}", "0", not lost))
    found.append(Finding("rounds that failed", str(len(failures)), "0", not failures))
    found.append(_longest_wait(samples))
    rest = [
        f"{name} {getattr(before, name)} -> {getattr(after, name)}" for name in COUNTS if _differs(before, after, name)
    ]
    found.append(Finding("left behind at the end", ", ".join(rest) or "nothing", "nothing", not rest))
    return found


def _longest_wait(samples: Sequence[Sample]) -> Finding:
    """Judge the longest wait of a probe client without the time spent waiting for a processor."""
    all_ms = max((sample.wait_longest for sample in samples), default=0.0)
    own_ms = max((sample.wait_longest_own for sample in samples), default=0.0)
    measured = f"{own_ms:.0f} ms, {all_ms:.0f} including waits for a processor"
    return Finding("longest wait of a probe client", measured, f"{REQUIRED_WAIT_MS:.0f} ms", own_ms < REQUIRED_WAIT_MS)


def _rise(bound: Bound, samples: Sequence[Sample]) -> Finding:
    if len(samples) < 4:
        return Finding(f"{bound.name}: rise an hour", "too few samples", "", is_met=False)
    slope = slope_per_hour(samples, bound.figure)
    name, unit = f"{bound.name}: rise an hour", f" {bound.unit}".rstrip()
    return Finding(name, f"{slope:.2f}{unit}", f"{bound.most_per_hour:g}{unit}", slope <= bound.most_per_hour)


def _differs(before: Sample, after: Sample, name: str) -> bool:
    return bool(getattr(before, name) != getattr(after, name))
