"""The parts of a node, built from its settings and connected with each other; ``Node`` starts and stops them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.access import LoginThrottle, PasswordVerifier
from gateway.archive.schemas import worker_module
from gateway.archive.service import ArchiveService
from gateway.config import Settings
from gateway.kernel.broker.recovery import Recovery
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.statistics.sampler import Statistics
from gateway.management.trace_files.trace_files import TRACE_FILES, TraceFiles
from gateway.net.clock import slices_on
from gateway.net.turn import Turn
from gateway.net.watermarks import Watermarks, memory_limit
from gateway.node.access import apply_access_settings, throttle_rules
from gateway.node.audit import PluginAudit
from gateway.node.bridges import node_bridges
from gateway.node.depths import depth_files, depth_record
from gateway.node.event_log import EventLog
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.kernel import build_kernel
from gateway.node.live_plugins import LivePlugins
from gateway.node.plugin_faults import PluginFaults
from gateway.node.ports import NodePorts
from gateway.node.processor_waits import ProcessorWaits
from gateway.node.protocols import PROTOCOLS, Services
from gateway.node.protocols.amqp import AmqpProtocol
from gateway.node.protocols.mqtt import MqttProtocol
from gateway.node.reactor_watchdog import BLOCKED_S, ReactorWatchdog
from gateway.node.recording import node_recorder
from gateway.node.store import StoreFiles
from gateway.node.turn_schedule import schedule_of, watch_turns
from gateway.node.vhost_access import VhostAccess
from gateway.worker_process.process import WorkerProcess


class NodeParts:
    """The parts of one node. None of them runs yet: no port is bound, no timer set, no thread started but the store's.

    They are built in the order of the methods; each uses those before it.
    """

    def __init__(self, settings: Settings, reactor: Any, collector: GarbageCollector, host: NodeHost) -> None:
        self.reactor = reactor  # Any: Twisted's interfaces are not types
        self.collector = collector
        self.host = host
        self._build_logins(settings)
        self._build_kernel(settings)
        self._build_turns()
        self._build_protocols(settings)
        self._build_records(settings)
        self._build_watermarks(settings)
        self._subscribe_to_events()

    def _build_logins(self, settings: Settings) -> None:
        """Build the authentication: the passwords, and the plugins of each virtual host."""
        login = settings.login
        self.hashing = self.host.make_hashing(login.hashing_threads, login.max_waiting_hashes, self.call_in_kernel)
        self.passwords = PasswordVerifier(
            self.hashing, self.reactor.seconds, login.remember_passwords_s, login.password_hashing
        )
        self.registry = self.host.load_plugins(settings.plugins_dir)
        self.vhost_access = VhostAccess(settings, self.registry, self.passwords)

    def _build_kernel(self, settings: Settings) -> None:
        """Build the store, the kernel on it, and their recovery."""
        self.store_files = StoreFiles(settings.storage.compact_at)
        self.store = self.host.open_store(settings, self.reactor, self.store_files)
        self.clock = self.host.make_clock(self.reactor, lambda: self.turn.touch())
        self.broker = build_kernel(settings, self.store, self.clock, self.vhost_access.view)
        self.store_files.broker = self.vhost_access.broker = self.broker
        self.broker.on_vhost = self._vhost_added
        self.clock.on_fault = partial(self.broker.faults.contain, "timer")
        self.throttle = LoginThrottle(throttle_rules(settings), self.clock.monotonic_s, self.clock.call_later)
        self.vhost_access.throttle = self.throttle
        apply_access_settings(settings, self.broker, self.throttle)
        self.live_plugins = LivePlugins(self.vhost_access, self.registry, self.broker)
        self.plugin_faults = PluginFaults(self.live_plugins, settings.plugins.fault_limit)
        self.recovery = Recovery(self.broker, self.store.record_count())

    def _build_turns(self) -> None:
        """Build the turns of the event loop, and the measurement of long ones."""
        schedule = schedule_of(self.reactor)
        self.turn = Turn(self.broker.journal, schedule)
        self.slices = slices_on(self.reactor, self.clock.monotonic_s)
        waits, faults = ProcessorWaits(), self.broker.faults
        if self.host.has_watchdog:
            faults.processor_wait_s = waits.recent_s
        self.turn_watch = watch_turns(schedule, self.clock, self.broker.journal, faults.processor_wait_s)
        self.watchdog = ReactorWatchdog(self.reactor.callFromThread, self.registry.plugin_at, BLOCKED_S, waits.sample)

    def _build_protocols(self, settings: Settings) -> None:
        """Build the protocols, their listeners, and the bridges to other brokers."""
        access = self.vhost_access
        services = Services(self.broker, self.turn, access.access_of, access.login_access, access.may_log_in_elsewhere)
        self.protocols = {protocol: protocol(services, settings) for protocol in PROTOCOLS}
        self.recorder = node_recorder(settings, self.clock)
        self.ports = NodePorts(settings, self.reactor, self.protocols, self.recorder, self.host.listeners)
        topics = self.mqtt.context
        self.bridges = node_bridges(
            self.broker, self.amqp, topics.mapping_of, topics.exchange_of, self.reactor, self.turn.touch
        )

    def _build_records(self, settings: Settings) -> None:
        """Build the archives, the statistics, the depths and the trace files, which are files beside the store."""
        self.worker = WorkerProcess(self.reactor, worker_module())
        self.archive = ArchiveService(settings, self.broker, self.worker, self.turn.touch)
        self.depth_files = depth_files(settings, self.call_in_kernel)
        self.depths = depth_record(settings, self.depth_files, self.clock)
        self.statistics = Statistics(self.broker, self.reactor.seconds, settings.data, self.depths)
        self.trace_files = TraceFiles(self.broker, settings.data / TRACE_FILES, settings.traces.max_file_size)

    def _build_watermarks(self, settings: Settings) -> None:
        """Build the alarms of memory and disk space."""
        self.watermarks = Watermarks(
            self.broker.alarms,
            settings.data,
            memory_limit(settings.memory_high_watermark),
            settings.disk_free_limit,
            self.collector.collect_all,
            self.clock.monotonic_s,
            self.host.memory_used,
            self.host.disk_free,
        )

    def _subscribe_to_events(self) -> None:
        """Pass the events of the broker to the log, the audit record and the parts that depend on its objects."""
        subscribe = self.broker.events.subscribe
        event_log = EventLog(self.reactor.seconds)
        subscribe(event_log, wants=event_log.wants)
        subscribe(self.vhost_access.forget_deleted, "vhost")
        subscribe(self.trace_files.forget_deleted, "vhost")
        subscribe(self.live_plugins.forget_deleted, "vhost")
        subscribe(self.plugin_faults, "fault", "vhost")
        subscribe(PluginAudit(self.broker), "plugin")
        if self.depths is not None:
            subscribe(self.depths, "queue")

    @property
    def mqtt(self) -> MqttProtocol:
        """The protocol MQTT."""
        mqtt = self.protocols[MqttProtocol]
        assert isinstance(mqtt, MqttProtocol)
        return mqtt

    @property
    def amqp(self) -> AmqpProtocol:
        """The protocol AMQP."""
        amqp = self.protocols[AmqpProtocol]
        assert isinstance(amqp, AmqpProtocol)
        return amqp

    def _vhost_added(self, vhost: VirtualHost) -> None:
        for protocol in self.protocols.values():
            protocol.vhost_added(vhost)

    def call_in_kernel(self, call: Callable[[], None]) -> None:
        """Run a call on the kernel's thread, in a turn. Called from any thread."""

        def run() -> None:
            try:
                call()
            except Exception as error:  # the reactor would log it as an error of its own
                self.broker.faults.contain("call from a thread", error)
            self.turn.touch()

        self.reactor.callFromThread(run)
