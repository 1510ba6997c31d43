"""The ports between nodes in memory: for tests of what stands on them, with several nodes in one process."""

from gateway_memory.cluster.bus import MemoryBus
from gateway_memory.cluster.metadata import MemoryMetadata
from gateway_memory.cluster.queue_logs import MemoryQueueLogs

__all__ = ["MemoryBus", "MemoryMetadata", "MemoryQueueLogs"]
