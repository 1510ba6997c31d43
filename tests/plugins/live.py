"""A broker in memory whose virtual hosts have live plugins, without a network."""

from collections.abc import Iterator
from pathlib import Path

from gateway.access import LoginThrottle, PasswordVerifier
from gateway.config import load
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.recovery import recover
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.native_header import NATIVE
from gateway.kernel.messages.origin import Origin
from gateway.node.access import throttle_rules
from gateway.node.live_plugins import LivePlugins
from gateway.node.plugin_faults import PluginFaults
from gateway.node.vhost_access import VhostAccess
from gateway.patterns import compile_pattern
from gateway.plugins.registry import load_plugins
from gateway.testing import FakeClock, header_of
from gateway_memory import MemoryStore

_SOURCE = """
from gateway.api import hookimpl

class Mine:
    def __init__(self, arguments):
        self.bindings = []
    def bind(self, binding):
        self.bindings.append(binding)
    def unbind(self, binding):
        self.bindings.remove(binding)
    def route(self, message):
        return [binding.destination for binding in {chosen}]

@hookimpl
def gateway_exchange_types():
    return {{"{name}": Mine}}
"""


def first_bound(count: int, name: str = "x-mine") -> str:
    """Return the source of a plugin with an exchange type that routes to the first destinations."""
    return _SOURCE.format(name=name, chosen=f"self.bindings[:{count}]")


class LiveBroker:
    """A broker with the virtual hosts ``/`` and ``other``, and the plugins of a directory."""

    def __init__(self, directory: Path, *settings: str, store: MemoryStore | None = None) -> None:
        self.directory = directory
        self._settings = settings
        self.settings = load(None, [f"plugins_dir={directory}", *settings])
        self.store = store or MemoryStore()
        self.clock = FakeClock()
        self.registry = load_plugins(directory, is_lenient=True)
        self.access = VhostAccess(self.settings, self.registry, PasswordVerifier())
        self.access.throttle = LoginThrottle(
            throttle_rules(self.settings), self.clock.monotonic_s, self.clock.call_later
        )
        self.kernel = Broker(
            self.store,
            self.clock,
            {NATIVE.name: NATIVE},
            self.access.view,
            node="gateway@test",
            compile_pattern=compile_pattern,
        )
        self.access.broker = self.kernel
        self.live = LivePlugins(self.access, self.registry, self.kernel)
        self.faults = PluginFaults(self.live, 0)
        self.events: list[Event] = []
        self.kernel.events.subscribe(self.events.append)
        self.kernel.events.subscribe(self.access.forget_deleted)
        recover(self.kernel, self.store.recover())
        self.vhost = self.kernel.declare_vhost("/")
        self.other = self.kernel.declare_vhost("other")
        self.access.is_lenient = False

    def restarted(self) -> "LiveBroker":
        """Return the broker that starts from what is committed."""
        self.kernel.journal.flush()
        self.store.commit()
        return LiveBroker(self.directory, *self._settings, store=self.store.reopened())

    def write(self, name: str, source: str) -> None:
        """Write a plugin file."""
        (self.directory / f"{name}.py").write_text(source)

    def reached(self, vhost: str = "/") -> list[str]:
        """Publish to the exchange ``e``; return the queues that got the message."""
        found = self.kernel.vhost(vhost)
        before = {name: len(queue) for name, queue in found.queue_by_name.items()}
        found.publish(found.exchange("e"), Message("e", "k", header_of(), b""))
        return [name for name, queue in found.queue_by_name.items() if len(queue) > before[name]]

    def bind_two(self, vhost: str = "/") -> None:
        """Declare the exchange ``e`` of type ``x-mine``, and bind the queues ``a`` and ``b``."""
        found = self.kernel.vhost(vhost)
        exchange = found.declare_exchange("e", "x-mine", is_durable=True)
        for name in ("a", "b"):
            found.bind(exchange, found.declare_queue(name, is_durable=True), "k")

    def intercepted(self, body: bytes) -> str:
        """Return what the interceptors make of a message to ``amq.direct``, as text."""
        chain = self.vhost.interception.publishing
        assert chain is not None
        return repr(chain.intercept(Message("amq.direct", "k", header_of(), body), Origin("here", 1, "guest", "")))

    def plugin_events(self) -> list[str]:
        """Return the names of the events about plugins, with their plugins."""
        return [f"{event.name} {event.subject}" for event in self.events if event.name.startswith("plugin.")]


def do(steps: Iterator[None]) -> None:
    """Run all steps of a change."""
    for _ in steps:
        pass
