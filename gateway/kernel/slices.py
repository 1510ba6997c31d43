"""Long work in short pieces, so that nobody waits for it: the loop is held up for a slice and a step at most."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.ports import Clock

#: How long work may go on at a stretch, in seconds.
SLICE_S: Final = 0.01


def in_slices(clock: "Clock", work: Iterator[None]) -> None:
    """Do the first slice of some work now and the rest in turns to come. The work yields after each step."""
    ends_s = clock.monotonic_s() + SLICE_S
    for _ in work:
        if clock.monotonic_s() >= ends_s:
            clock.call_later(0, lambda: in_slices(clock, work))
            return
