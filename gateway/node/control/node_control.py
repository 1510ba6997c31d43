"""Control of the node for the API; each change is logged with its user, and reported as an event."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.events import Event
from gateway.logs.recent import RECENT
from gateway.logs.rotation import rotate
from gateway.logs.setup import start_logging
from gateway.node.control.event_feed import Feed
from gateway.node.control.live_settings import LiveSettings, log_reload
from gateway.node.control.maintenance import Maintenance
from gateway.node.control.tls_report import tls_report
from gateway.recording.recorder import Recorder

_STANDARD_ERROR: Final = "<stderr>"

_RECORDING: Final = "recording.enabled"


class RunningNode:
    """Changes of operators to a running node. ``secrets_of`` returns the names of a plugin's secret settings."""

    def __init__(
        self,
        broker: Broker,
        settings: LiveSettings,
        maintenance: Maintenance,
        recorder: Recorder,
        secrets_of: Callable[[str], Collection[str]],
        stop: Callable[[], None],
    ) -> None:
        self._broker = broker
        self._settings = settings
        self._maintenance = maintenance
        self._recorder = recorder
        self._secrets_of = secrets_of
        self._stop = stop

    # Settings

    def settings(self) -> list[Mapping[str, Any]]:
        """Return the settings in effect, one row each, with their origins."""
        return list(self._settings.rows(self._secrets_of))

    def change_setting(self, key: str, value: object, user: str) -> None:
        """Change a setting until the node stops. :raises ConfigurationError: if it cannot change, or not to this."""
        self._settings.change(key, value)
        self._note("setting.changed", user, key, value=value)

    def restore_setting(self, key: str, user: str) -> bool:
        """Restore the configured value of a setting; return whether it had been changed."""
        if not self._settings.restore(key):
            return False
        self._note("setting.restored", user, key)
        return True

    def reload(self, user: str) -> Mapping[str, Any]:
        """Reload the configuration and the certificates. :raises GatewayError: if it is invalid; nothing changes."""
        result = self._settings.reload()
        log_reload(result, user)
        self._broker.events.emit(Event("node.reloaded", "", "", {"user": user, "applied": result.applied}))
        return {
            "applied": result.applied,
            "needs_restart": result.needs_restart,
            "kept": result.kept,
            "certificates": result.certificates,
        }

    def config_files(self) -> Sequence[str]:
        """Return the configuration files."""
        return self._settings.files

    def tls(self) -> Mapping[str, Any]:
        """Return the TLS versions, the cipher suites and the certificates."""
        return tls_report(self._settings.effective.tls)

    # The log

    def log_files(self) -> Sequence[str]:
        """Return the log files; ``<stderr>`` is the standard error stream."""
        file = self._settings.effective.log.file
        return [_STANDARD_ERROR if file is None else str(file)]

    def log_lines(self, after: int) -> tuple[int, Sequence[str]]:
        """Return the kept log lines after a number, and the number of the last line."""
        return RECENT.after(after)

    def rotate_log(self, user: str) -> Mapping[str, Any]:
        """Rename the log file and begin a new one. :raises ConfigurationError: if there is no file, or it cannot be."""
        log = self._settings.effective.log
        if log.file is None:
            raise ConfigurationError("the log is written to the standard error stream: log.file is not set")
        try:
            renamed = rotate(log.file, log.kept_files)
        except OSError as error:
            raise ConfigurationError(f"log.file: cannot be renamed: {error.strerror}") from error
        start_logging(log)
        self._settings.on_log_changed()
        self._note("log.rotated", user, renamed=str(renamed))
        return {"file": str(log.file), "renamed": str(renamed)}

    # Maintenance

    def maintenance(self) -> Mapping[str, Any]:
        """Return whether the node is in maintenance, its closed listeners, and the connections that are left."""
        return self._maintenance.shown

    def suspend_listeners(self, user: str) -> None:
        """Close the listeners of clients."""
        self._maintenance.suspend()
        self._note("listeners.suspended", user)

    def resume_listeners(self, user: str) -> None:
        """Open the closed listeners again. :raises ConfigurationError: if a port is in use."""
        self._maintenance.resume()
        self._note("listeners.resumed", user)

    def drain(self, user: str) -> None:
        """Begin maintenance."""
        self._note("node.drained", user)
        self._maintenance.drain()

    def revive(self, user: str) -> None:
        """End maintenance. :raises ConfigurationError: if a port is in use."""
        self._maintenance.revive()
        self._note("node.revived", user)

    # The recording of connections

    def recording(self) -> Mapping[str, Any]:
        """Return the state of the recording."""
        return self._recorder.shown

    def start_recording(self, user: str) -> None:
        """Start a recording, unless one runs. :raises ConfigurationError: if its file cannot be created."""
        self._settings.change(_RECORDING, True)
        if reason := self._recorder.start():
            raise ConfigurationError(reason)
        self._note("recording.started", user)

    def stop_recording(self, user: str) -> None:
        """End the recording."""
        self._settings.change(_RECORDING, False)
        self._recorder.stop()
        self._note("recording.stopped", user)

    def stop(self, user: str) -> None:
        """Stop the node soon."""
        self._note("node.stopping", user)
        self._stop()

    def events(self) -> Feed:
        """Return a feed of the events from now on."""
        return Feed(self._broker.plugins_in_use.event_listeners, self._broker.clock.wall_ms)

    def _note(self, name: str, user: str, subject: str = "", **details: object) -> None:
        """Report a change as an event, which is logged too."""
        self._broker.events.emit(Event(name, "", subject, {"user": user, **details}))
