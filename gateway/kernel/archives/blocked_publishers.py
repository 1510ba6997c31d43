"""Connections that are blocked because of the destinations they publish to; other connections continue."""

from collections.abc import Callable, Iterable


class BlockedPublishers:
    """The reasons that block each connection.

    ``on_change`` is called with a connection's name when it is blocked or freed. Reasons are compared by identity. A
    connection that ended is removed together with its last reason.
    """

    def __init__(self) -> None:
        self.on_change: Callable[[str], None] = lambda connection: None
        self._reasons: dict[str, set[object]] = {}

    def __contains__(self, connection: str) -> bool:
        return connection in self._reasons

    def __len__(self) -> int:
        return len(self._reasons)

    def waiting_for(self, reason: object) -> list[str]:
        """Return the connections that a reason blocks."""
        return [connection for connection, reasons in self._reasons.items() if reason in reasons]

    def hold(self, connection: str, reasons: Iterable[object]) -> None:
        """Block a connection for all of these reasons."""
        known = self._reasons.get(connection)
        if known is not None:
            known.update(reasons)
            return
        self._reasons[connection] = set(reasons)
        self.on_change(connection)

    def release(self, reason: object) -> None:
        """Remove a reason from all connections, and free those without another one."""
        for connection, reasons in list(self._reasons.items()):
            reasons.discard(reason)
            if not reasons:
                del self._reasons[connection]
                self.on_change(connection)
