"""The durable entities: users, exchanges, queues, sessions and more, put as a whole and removed by key.

Importing any of the modules imports all of them, because each class enters itself in the table of kinds.
"""

from gateway.kernel.journal.records import access, batches, kept, progress, sessions, topology

__all__ = ["access", "batches", "kept", "progress", "sessions", "topology"]
