"""The figures of what a follower passes on."""

from dataclasses import dataclass


@dataclass(slots=True)
class ForwardingCounts:
    """The connections that are open, those that wait for a leader, all so far, those for which there was no leader in
    time, the bytes of clients and of the leader, how often a client went on with another leader, and how many were told
    that they cannot.
    """

    open: int = 0
    waiting: int = 0
    connections: int = 0
    expired: int = 0
    received: int = 0
    sent: int = 0
    resumed: int = 0
    not_resumed: int = 0
