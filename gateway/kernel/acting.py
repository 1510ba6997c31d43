"""The origin of the request that is executed now: its user, for events, and its client, for the audit record."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Actor:
    """The origin of a change: the user, the address of its client, and the surface it used."""

    user: str
    address: str
    surface: str


class RequestSource(Protocol):
    """A connection or request of a user."""

    @property
    def user_name(self) -> str:
        """The user's name; empty before the login."""
        ...

    @property
    def client(self) -> Actor | None:
        """The client of a protocol; ``None`` for a source that records its changes itself, such as the HTTP API."""
        ...


class NamedUser:
    """A user by name only, whose changes the surface records itself."""

    __slots__ = ("user_name",)

    client: Actor | None = None

    def __init__(self, user_name: str) -> None:
        self.user_name = user_name


class ActingUser:
    """The ``source`` of the request that is executed; ``None`` for the broker's own work, such as an expiry.

    The connections of clients set it for each read, so that is one assignment; only events ask for the user and the
    client. What the broker does by itself meanwhile, such as the deletion of an auto-delete queue, is done by ``None``.
    """

    __slots__ = ("source",)

    def __init__(self) -> None:
        self.source: RequestSource | None = None

    @property
    def name(self) -> str:
        """The user's name; empty for the broker's own work."""
        return "" if self.source is None else self.source.user_name

    @property
    def client(self) -> Actor | None:
        """The client whose request is executed; ``None`` for the broker's own work, and for other surfaces."""
        return None if self.source is None else self.source.client

    def being(self, source: RequestSource | None) -> "OtherSource":
        """Name another source within the block."""
        return OtherSource(self, source)


class OtherSource:
    """A block in which another source is named; each close of a connection has one, so it is no generator."""

    __slots__ = ("_acting", "_former", "_source")

    def __init__(self, acting: ActingUser, source: RequestSource | None) -> None:
        self._acting = acting
        self._source = source
        self._former: RequestSource | None = None

    def __enter__(self) -> None:
        self._former, self._acting.source = self._acting.source, self._source

    def __exit__(self, *reason: object) -> None:
        self._acting.source = self._former
