"""Whether the engine answers this node: for its readiness check."""

from typing import Protocol


class ContactListener(Protocol):
    """Gets reports about the contact, one for each change."""

    def on_unreachable(self, reason: str) -> None:
        """Note that the engine does not answer."""
        ...

    def on_reachable(self) -> None:
        """Note that the engine answers, for the first time or again."""
        ...


class Contact:
    """The contact of a node to the engine. ``reason`` says why there is none; it is ``None`` while there is one."""

    def __init__(self, listener: ContactListener | None = None) -> None:
        self._listener = listener
        self.reason: str | None = "the engine has not answered yet"
        self._is_reported = False

    def answered(self) -> None:
        """Note an answer of the engine, also a refusal."""
        if self.reason is not None:
            self.reason = None
            self._is_reported = False
            if self._listener is not None:
                self._listener.on_reachable()

    def unanswered(self, reason: str) -> None:
        """Note a call without an answer."""
        self.reason = reason
        if not self._is_reported:
            self._is_reported = True
            if self._listener is not None:
                self._listener.on_unreachable(reason)
