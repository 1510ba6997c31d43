"""What one HTTP client, and all of them together, may hold of the broker."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """The limits of a listener. Sizes are in bytes, times in seconds.

    ``max_bodies_size`` bounds the bodies of all requests that are being received or worked on. ``min_body_rate`` is in
    bytes a second. ``stall_timeout_s`` is how long a client may take nothing of an answer.
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
    """An amount of memory that several take from and give back to."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.taken = 0

    def take(self, amount: int) -> bool:
        """Take some of it; return whether there was enough. Without enough nothing is taken."""
        if self.taken + amount > self.size:
            return False
        self.taken += amount
        return True

    def release(self, amount: int) -> None:
        """Return what was taken."""
        self.taken -= amount
