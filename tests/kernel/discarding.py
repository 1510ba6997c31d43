"""Discarding messages in the middle of a queue, as limits and TTLs do."""

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.queueing.queue import Queue


def discard_these(queue: Queue, positions: set[int]) -> None:
    """Discard the ready messages at these positions as expired."""
    for entry in queue.ready.remove(positions):
        queue.drops.discard(entry, DeathReason.EXPIRED)
