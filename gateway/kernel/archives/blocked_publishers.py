"""Connections that have to wait because of what they publish to, while everybody else goes on."""

from collections.abc import Callable, Iterable


class BlockedPublishers:
    """Who waits for what. ``on_change`` is called with the name of a connection that has to wait, or need not any more.

    What is waited for is told apart by identity. A connection that ended is forgotten with the last that it waits for.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[str], None] = lambda connection: None
        self._reasons: dict[str, set[object]] = {}

    def __contains__(self, connection: str) -> bool:
        return connection in self._reasons

    def __len__(self) -> int:
        return len(self._reasons)

    def waiting_for(self, reason: object) -> list[str]:
        """Return the connections that wait for this."""
        return [connection for connection, reasons in self._reasons.items() if reason in reasons]

    def hold(self, connection: str, reasons: Iterable[object]) -> None:
        """Let a connection wait for all of these."""
        known = self._reasons.get(connection)
        if known is not None:
            known.update(reasons)
            return
        self._reasons[connection] = set(reasons)
        self.on_change(connection)

    def release(self, reason: object) -> None:
        """Nobody has to wait for this any more."""
        for connection, reasons in list(self._reasons.items()):
            reasons.discard(reason)
            if not reasons:
                del self._reasons[connection]
                self.on_change(connection)
