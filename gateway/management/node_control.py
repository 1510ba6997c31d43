"""Control of the running node, as the API's resources use it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol


class NodeControl(Protocol):
    """Changes that operators make to a running node. Nothing of it survives a restart of the node.

    Changes raise ``ConfigurationError`` if they cannot be made; then nothing has changed.
    """

    def settings(self) -> list[Mapping[str, Any]]:
        """Return the settings in effect, one row each, with their origins."""
        ...

    def change_setting(self, key: str, value: object, user: str) -> None:
        """Change a setting until the node stops."""
        ...

    def restore_setting(self, key: str, user: str) -> bool:
        """Restore the configured value of a setting; return whether it had been changed."""
        ...

    def reload(self, user: str) -> Mapping[str, Any]:
        """Read the configuration and the certificates again; return what changed and what needs a restart."""
        ...

    def rotate_log(self, user: str) -> Mapping[str, Any]:
        """Rename the log file and begin a new one; return the names of both."""
        ...

    def config_files(self) -> Sequence[str]:
        """Return the configuration files."""
        ...

    def log_files(self) -> Sequence[str]:
        """Return the log files; ``<stderr>`` is the standard error stream."""
        ...

    def log_lines(self, after: int) -> tuple[int, Sequence[str]]:
        """Return the kept log lines after a number, and the number of the last line; 0 is before the first."""
        ...

    def tls(self) -> Mapping[str, Any]:
        """Return the TLS versions, the cipher suites and the certificates."""
        ...

    def maintenance(self) -> Mapping[str, Any]:
        """Return whether the node is in maintenance, its closed listeners, and the connections that are left."""
        ...

    def suspend_listeners(self, user: str) -> None:
        """Close the listeners of clients; this API stays open."""
        ...

    def resume_listeners(self, user: str) -> None:
        """Open the closed listeners again, at the same ports."""
        ...

    def drain(self, user: str) -> None:
        """Begin maintenance: close the listeners of clients, and their connections one after the other."""
        ...

    def revive(self, user: str) -> None:
        """End maintenance."""
        ...

    def recording(self) -> Mapping[str, Any]:
        """Return the state of the recording of connections."""
        ...

    def start_recording(self, user: str) -> None:
        """Record the connections that are opened from now on."""
        ...

    def stop_recording(self, user: str) -> None:
        """End the recording."""
        ...

    def stop(self, user: str) -> None:
        """Stop the node once the answer is sent."""
        ...

    def events(self) -> "EventFeed":
        """Return a feed of the events from now on; the caller closes it."""
        ...


class EventFeed(Protocol):
    """The events since the last call, of a reader that must not fall far behind."""

    def take(self) -> Iterator[Mapping[str, Any]]:
        """Yield the waiting events, oldest first."""
        ...

    def close(self) -> None:
        """Stop collecting events."""
        ...
