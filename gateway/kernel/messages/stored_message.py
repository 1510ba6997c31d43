"""The content of a message as read from the store."""


class StoredMessage:
    """A message's content as read from the store.

    It never changes, because contents that repeat an envelope share its parts.
    """

    __slots__ = ("body", "exchange", "header", "header_format", "routing_key")

    def __init__(self, exchange: str, routing_key: str, header_format: str, header: bytes, body: bytes) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.header_format = header_format
        self.header = header
        self.body = body

    def __eq__(self, other: object) -> bool:
        """Return whether all parts are equal."""
        return isinstance(other, StoredMessage) and self._parts() == other._parts()

    def __hash__(self) -> int:
        """Return a hash of all parts."""
        return hash(self._parts())

    def __repr__(self) -> str:
        """Return all parts, for a failed test."""
        return f"StoredMessage{self._parts()}"

    def _parts(self) -> tuple[str, str, str, bytes, bytes]:
        return self.exchange, self.routing_key, self.header_format, self.header, self.body
