"""Faults of plugins by virtual host; a plugin that fails repeatedly is switched off."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from gateway.kernel.clock import PAUSE_S
from gateway.kernel.errors import ConfigurationError, PreconditionFailed, Refused
from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.logs import StructuredLog
from gateway.node.live_plugins import LivePlugins
from gateway.plugins.registry import ALWAYS_ON

_log: Final = StructuredLog("node")

#: The time within which faults count together, in seconds.
PERIOD_S: Final = 60.0

#: The event that reports a plugin that fails repeatedly and stays enabled.
FAULTY: Final = "plugin.faulty"


class PluginFaults:
    """Counts the faults of each plugin by virtual host, and switches off one that has ``limit`` within a minute.

    A plugin that decides on access stays enabled: its faults refuse logins, and access without it could be wider than
    intended. So do built-in plugins that are always enabled. Both are reported instead. A ``limit`` of 0 is none.
    """

    def __init__(self, live: LivePlugins, limit: int) -> None:
        self._live = live
        self._limit = limit
        self._recent: dict[tuple[str, str], deque[float]] = {}
        self._deciding: set[tuple[str, str]] = set()
        self.count: dict[tuple[str, str], int] = {}

    def __call__(self, event: Event) -> None:
        """Count a fault; other events are ignored, but those of deleted virtual hosts."""
        if event.name == "vhost.deleted":
            for key in [key for key in self.count if key[0] == event.vhost]:
                self.count.pop(key)
                self._recent.pop(key, None)
        plugin = event.details.get("plugin") if event.name == FAULT else ""
        if isinstance(plugin, str) and plugin and event.vhost:
            self._count((event.vhost, plugin), str(event.details.get("error")))

    def _count(self, key: tuple[str, str], error: str) -> None:
        self.count[key] = self.count.get(key, 0) + 1
        if not self._limit or key in self._deciding:
            return
        clock = self._live.broker.clock
        now_s = clock.monotonic_s()
        recent = self._recent.setdefault(key, deque(maxlen=self._limit))
        recent.append(now_s)
        if len(recent) == self._limit and now_s - recent[0] <= PERIOD_S:
            self._deciding.add(key)
            clock.call_later(0, lambda: self._end(key, error))  # not in the call that failed

    def _end(self, key: tuple[str, str], error: str) -> None:
        """Switch a plugin off, or report why it stays enabled."""
        vhost, plugin = key
        self._deciding.discard(key)
        self._recent.pop(key, None)
        live = self._live
        if vhost not in live.broker.vhost_by_name:
            return
        reason = f"{self._limit} faults within {PERIOD_S:.0f} s, the last: {error}"
        if plugin in ALWAYS_ON or live.registry.decides_access(plugin):
            stays = "it decides on access" if live.registry.decides_access(plugin) else "it is always enabled"
            _log.error("plugin fails repeatedly", vhost=vhost, plugin=plugin, reason=reason, stays_enabled=stays)
            live.broker.events.emit(Event(FAULTY, vhost, plugin, {"reason": reason}))
            return
        live.broker.clock.background.add(self._switching_off(key, reason))

    def _switching_off(self, key: tuple[str, str], reason: str) -> Iterator[None]:
        vhost, plugin = key
        try:
            yield from self._live.disabling(vhost, plugin, fault=reason)
        except PreconditionFailed:
            if plugin in self._live.enabled(vhost):  # another change is in progress
                self._live.broker.clock.call_later(PAUSE_S, lambda: self._end(key, reason))
        except (ConfigurationError, Refused) as error:
            _log.error("plugin not switched off", vhost=vhost, plugin=plugin, reason=str(error))
        else:
            _log.error("plugin switched off", vhost=vhost, plugin=plugin, reason=reason)
