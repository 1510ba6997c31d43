"""The record of the depths of queues, from the settings."""

from collections.abc import Callable
from typing import Final

from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.management.depths.depth_files import DepthFiles
from gateway.management.depths.depth_record import DepthRecord

#: The directory of the files below the data directory.
_DIRECTORY: Final = "depths"

#: An answer is at most so many intervals older than the moment that it is for.
_INTERVALS: Final = 2


def depth_files(settings: Settings, call_in_kernel: Callable[[Callable[[], None]], object]) -> DepthFiles:
    """Return the files of depths, which may be read while nothing is recorded."""
    depths = settings.depths
    longest_ms = _INTERVALS * depths.interval_s * 1000
    directory = settings.data / _DIRECTORY
    return DepthFiles(directory, longest_ms, depths.max_age_s * 1000, depths.max_size, call_in_kernel)


def depth_record(settings: Settings, files: DepthFiles, clock: Clock) -> DepthRecord | None:
    """Return the record; ``None`` if depths are not recorded."""
    interval_s = settings.depths.interval_s
    return DepthRecord(files, clock, interval_s) if interval_s else None
