"""The user whose request the broker executes now, which events name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class HasUserName(Protocol):
    """A connection or request of a user."""

    @property
    def user_name(self) -> str:
        """The user's name; empty before the login."""
        ...


class NamedUser:
    """A user by name only."""

    __slots__ = ("user_name",)

    def __init__(self, user_name: str) -> None:
        self.user_name = user_name


class ActingUser:
    """The ``source`` of the request that is executed; ``None`` for the broker's own work, such as an expiry.

    The connections of clients set it for each read, so that is one assignment; the name is asked for by events only.
    """

    __slots__ = ("source",)

    def __init__(self) -> None:
        self.source: HasUserName | None = None

    @property
    def name(self) -> str:
        """The user's name; empty for the broker's own work."""
        return "" if self.source is None else self.source.user_name

    @contextmanager
    def being(self, source: HasUserName | None) -> Iterator[None]:
        """Name another source within the block."""
        former, self.source = self.source, source
        try:
            yield
        finally:
            self.source = former
