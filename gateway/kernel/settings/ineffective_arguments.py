"""Queue arguments that are accepted but have no effect, or less than expected; they are logged."""

from collections.abc import Iterator

from gateway.kernel.messages.message import Arguments

#: More priorities than this use memory and seldom help.
MANY_PRIORITIES = 10


def warnings_on(arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Yield each such argument with an explanation."""
    if "x-queue-mode" in arguments:
        yield "x-queue-mode", "deprecated and ignored: every queue keeps the contents of most messages on disk"
    if arguments.get("x-queue-version") == 1:
        yield "x-queue-version", "deprecated: version 1 is the same as version 2"
    if "x-queue-master-locator" in arguments:
        yield "x-queue-master-locator", "deprecated and ignored: use x-queue-leader-locator"
    priorities = arguments.get("x-max-priority")
    if isinstance(priorities, int) and priorities > MANY_PRIORITIES:
        yield "x-max-priority", f"more than {MANY_PRIORITIES} priorities cost memory; 2 to 5 are usual"
