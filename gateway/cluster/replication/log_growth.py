"""The growth of a log since its last checkpoint, which decides when the next one is due."""

from typing import Final

#: A checkpoint is due when the log has grown by this many bytes, and by twice the size of the last checkpoint.
_LEAST_BYTES: Final = 64 * 1024 * 1024


class LogGrowth:
    """The steps since the last complete checkpoint: their records and bytes; and the bytes of that checkpoint."""

    __slots__ = ("bytes", "checkpoint_bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.checkpoint_bytes = 0

    def add(self, size: int) -> None:
        """Note the record of a step."""
        self.records += 1
        self.bytes += size

    def end_checkpoint(self, size: int) -> None:
        """Note that a checkpoint is complete, with the bytes of its pieces."""
        self.records = self.bytes = 0
        self.checkpoint_bytes = size

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether the log has grown by enough."""
        return self.bytes >= max(_LEAST_BYTES, 2 * self.checkpoint_bytes)
