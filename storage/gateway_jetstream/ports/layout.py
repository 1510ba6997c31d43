"""The names of streams and subjects: everything of a cluster begins with its prefix."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.cluster.queue_log import QueueId
from gateway_jetstream.ports.key_text import encode_key

#: The copies of each stream.
REPLICAS: Final = 3

#: The time in which a message with the same id is stored once.
_DUPLICATE_WINDOW_NS: Final = 120_000_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Names, by a prefix and the number of shards, which is fixed when the cluster is founded."""

    shards: int
    prefix: str = "gateway"

    @property
    def bucket(self) -> str:
        """The bucket of the metadata."""
        return self.prefix

    def stream(self, queue: QueueId) -> str:
        """The stream that has the log of a queue."""
        return self._stream(queue % self.shards)

    def owner_subject(self, queue: QueueId) -> str:
        """The subject of a queue's claims."""
        return f"{self.prefix}.q.{queue % self.shards}.{queue}.own"

    def log_subject(self, queue: QueueId) -> str:
        """The subject of a queue's batches."""
        return f"{self.prefix}.q.{queue % self.shards}.{queue}.log"

    def node_subject(self, node: str) -> str:
        """The beginning of the subjects of a node."""
        return f"{self.prefix}.n.{encode_key((node,))}"

    def shard_streams(self) -> list[Mapping[str, Any]]:
        """Return the configurations of the streams with the logs."""
        return [
            {
                "name": self._stream(shard),
                "subjects": [f"{self.prefix}.q.{shard}.>"],
                "retention": "limits",
                "storage": "file",
                "num_replicas": REPLICAS,
                "discard": "new",
                "deny_delete": True,
                "allow_direct": True,
                "duplicate_window": _DUPLICATE_WINDOW_NS,
            }
            for shard in range(self.shards)
        ]

    def _stream(self, shard: int) -> str:
        return f"{self.prefix}_q_{shard}"
