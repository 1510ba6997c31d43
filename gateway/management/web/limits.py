"""Resource limits of HTTP clients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The limits of a listener. Sizes are in bytes, times in seconds.

    ``max_bodies_size`` limits the bodies of all requests in progress. ``min_body_rate`` is in
    bytes a second. ``stall_timeout_s`` is the time a client may go without reading a response.
    """

    max_connections: int = 500
    max_header_size: int = 16 * 2**10
    max_body_size: int = 64 * 2**20
    max_bodies_size: int = 128 * 2**20
    min_body_rate: int = 1024
    header_timeout_s: float = 10.0
    idle_timeout_s: float = 60.0
    stall_timeout_s: float = 60.0


class ByteBudget:
    """A shared amount of memory from which bytes are reserved and released."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0

    def take(self, amount: int) -> bool:
        """Reserve bytes; return whether there were enough."""
        if self.taken + amount > self.size:
            return False
        self.taken += amount
        return True

    def release(self, amount: int) -> None:
        """Release reserved bytes."""
        self.taken -= amount
