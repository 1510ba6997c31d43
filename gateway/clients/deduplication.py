"""The window in which a queue or an exchange drops repeated messages."""

from dataclasses import dataclass
from typing import Any

from gateway.clients.bounds import Seconds, milliseconds, number


@dataclass(frozen=True, slots=True)
class DeduplicationRule:
    """Drops messages with a ``deduplication_id`` that was seen among the last ``size``, and within ``ttl``.

    ``None`` is the broker's default: 10,000 values, and no limit of time.
    """

    size: int | None = None
    ttl: Seconds | None = None

    def arguments(self) -> dict[str, Any]:  # Any: a value of a table of AMQP
        """Return the arguments of a queue, or of an exchange of any type."""
        found: dict[str, Any] = {"x-message-deduplication": True}
        if self.size is not None:
            found["x-cache-size"] = number("size", self.size, 1)
        if self.ttl is not None:
            found["x-cache-ttl"] = milliseconds("ttl", self.ttl, 1)
        return found
