"""Harness of the broker: a real broker on a store in memory, no sockets, no reactor.

A protocol's ``dialogue.py`` adds the settings of its machines, and its clients.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from gateway.access import Access
from gateway.access.passwords import DEFAULT_ALGORITHM, hash_password
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.directory import Directory
from gateway.kernel.broker.recovery import recover
from gateway.kernel.clock import Clock
from gateway.kernel.journal.records.access import PermissionRecord, UserRecord
from gateway.kernel.messages.message import HeaderFormat, Value
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.turn import Schedule, Turn
from gateway.patterns import compile_pattern
from gateway.plugins.enabling import enabled_plugins
from gateway.plugins.registry import PluginRegistry, PluginView, load_plugins
from gateway.testing import FakeClock
from gateway_memory import MemoryStore

ALL = (".*", ".*", ".*")


@cache
def _plugins() -> PluginRegistry:
    return load_plugins()


class ManualSchedule(Schedule):
    """A schedule that ends no turn; tests call ``end``."""

    def end_soon(self, turn: Turn) -> None:
        pass

    def go_on_soon(self, turn: Turn) -> None:
        pass


class BrokerHarness:
    """A broker with virtual host ``/`` and user guest, whose turns end on request.

    It starts from the data in ``store``; ``plugins`` are enabled in the virtual host. A subclass sets the ``formats``.
    """

    formats: ClassVar[tuple[HeaderFormat, ...]]

    def __init__(self, store: MemoryStore | None, clock: Clock, plugins: tuple[str, ...] = ()) -> None:
        self.store = store or MemoryStore()
        self.clock = clock
        self._views: dict[str, PluginView] = {}
        self._accesses: dict[str, Access] = {}
        formats = {format.name: format for format in self.formats}
        self.broker = Broker(
            self.store, clock, formats, self._view, node="gateway@here", compile_pattern=compile_pattern
        )
        self.turn = Turn(self.broker.journal, ManualSchedule())
        recover(self.broker, self.store.recover())
        self.broker.declare_vhost("/", plugins={name: {} for name in plugins})
        self.put_user("guest", "guest")

    @property
    def vhost(self) -> VirtualHost:
        """The default virtual host."""
        return self.broker.vhost("/")

    def put_user(
        self, name: str, password: str, *tags: Value, vhost: str = "/", may: tuple[str, str, str] = ALL
    ) -> None:
        """Add a user; ``may`` are the patterns for configure, write and read."""
        user = UserRecord(name, hash_password(password), DEFAULT_ALGORITHM, list(tags), {})
        self.broker.directory.put_user(user)
        self.broker.directory.put_permission(PermissionRecord(vhost, name, *may))

    @property
    def fake_clock(self) -> FakeClock:
        """The clock, if it is a fake one."""
        assert isinstance(self.clock, FakeClock)
        return self.clock

    def ready(self, queue: str) -> int:
        """Return the number of ready messages in a queue."""
        return len(self.vhost.queue(queue))

    def advance(self, seconds: float) -> None:
        """Advance the clock between two turns."""
        self.settle()
        self.fake_clock.advance(seconds)
        self.settle()

    def end_turn(self) -> None:
        """End the turn: pass its changes to the store and write the output, without a commit."""
        self.turn.end()

    def settle(self) -> None:
        """End turns and commit until no more output follows."""
        for _ in range(4):
            self.turn.end()
            self.store.commit()
        self.turn.end()

    def _view(self, vhost: str, recorded: Mapping[str, Any]) -> PluginView:
        self._views[vhost] = view = _plugins().view(vhost, enabled_plugins({}, recorded))
        return view

    def _access(self, vhost: str) -> Access:
        if vhost not in self._accesses:
            self._accesses[vhost] = self._access_by(self._views[vhost], self.broker.directory)
        return self._accesses[vhost]

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        """Return the access to a virtual host by its plugins."""
        return Access(view.authenticators(directory), view.authorizers(directory))
