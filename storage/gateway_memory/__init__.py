"""A store in memory: for tests, and for brokers that need not survive a restart."""

from gateway_memory.store import MemoryStore

__all__ = ["MemoryStore"]
