"""The port for what nodes send each other: requests and one-way frames, at most once."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from gateway.cluster.errors import ClusterError

Reply: TypeAlias = Callable[[bytes], None]
"""Sends the answer of a request. Further calls are ignored, and those after its time limit are of no effect."""

Answered: TypeAlias = Callable[[bytes | ClusterError], None]
"""Takes the answer of a request: the bytes, ``NodeUnreachable`` if the node did not get it, else ``Unanswered``."""


class BusListener(Protocol):
    """A node on the bus. The calls are never made from inside a call of the port."""

    def on_request(self, body: bytes, reply: Reply) -> None:
        """Take a request, and answer it now or later."""
        ...

    def on_frame(self, frame: bytes) -> None:
        """Take a one-way frame."""
        ...


class BusSeat(Protocol):
    """The place of a node on the bus."""

    def leave(self) -> None:
        """Get nothing any more; safe to call twice."""
        ...


class Bus(Protocol):
    """Sends to nodes by name. What one node sends to another arrives in the order in which it was sent, or not at all.

    Nothing is repeated: a sender must expect that it is lost.
    """

    @property
    def most_bytes(self) -> int:
        """The size of the largest request, answer or frame."""
        ...

    def join(self, node: str, listener: BusListener) -> BusSeat:
        """Take a node's place: the listener gets what is sent to it."""
        ...

    def send(self, node: str, frame: bytes) -> None:
        """Send a one-way frame; it is lost if the node cannot be reached. :raises TooLarge:"""
        ...

    def request(self, node: str, body: bytes, answered: Answered, timeout_s: float) -> None:
        """Send a request; ``answered`` is called later, exactly once. :raises TooLarge:"""
        ...
