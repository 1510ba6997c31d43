"""The bytes of one relayed connection that wait: for the client, for the leader, or for another leader."""


class RelayedBytes:
    """Owns what is passed on next, in pieces, and what the client sends while no leader can take it (``early``)."""

    def __init__(self) -> None:
        self.for_client: list[bytes] = []
        self.for_leader: list[bytes] = []
        self.early: list[bytes] = []

    def take_for_client(self) -> bytes:
        """Remove and return what the client is to get now."""
        taken, self.for_client = self.for_client, []
        return b"".join(taken)

    def take_for_leader(self) -> bytes:
        """Remove and return what the leader is to get now."""
        taken, self.for_leader = self.for_leader, []
        return b"".join(taken)

    def take_early(self) -> bytes:
        """Remove and return what the client has sent meanwhile."""
        taken, self.early = self.early, []
        return b"".join(taken)
