"""One broker with its store, kernel, plugins and adapters. ``gateway.node.app`` or a test starts and stops it."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from gateway.access import LoginThrottle, PasswordVerifier
from gateway.archive.service import WORKER, ArchiveService
from gateway.config import Configured, Settings
from gateway.definitions import read_definitions, steps_of
from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.kernel.broker.recovery import Recovery
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway.management.context import ApiContext
from gateway.management.http.login_sessions import LoginSessions
from gateway.management.http.site import management_site
from gateway.management.statistics.sampler import INTERVAL_S as SAMPLE_INTERVAL_S
from gateway.management.statistics.sampler import Statistics
from gateway.management.trace_files.trace_files import TRACE_FILES, TraceFiles
from gateway.net.turn import Turn
from gateway.net.watermarks import SHORT_INTERVAL_S, Watermarks, memory_limit
from gateway.node.access import apply_access_settings, login_counts, throttle_rules
from gateway.node.audit import PRUNING_INTERVAL_S, PluginAudit, audit_rules, record_definitions, workbench_rules
from gateway.node.bridges import node_bridges
from gateway.node.clockwork import Clockwork
from gateway.node.cluster_id import ensure_cluster_id
from gateway.node.control.live_settings import LiveSettings
from gateway.node.control.maintenance import Maintenance
from gateway.node.control.node_control import RunningNode
from gateway.node.defaults import create_defaults
from gateway.node.event_log import EventLog
from gateway.node.exposure import warn_of_logins_without_secret
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.http import http_cross_origin_policy, http_limits
from gateway.node.kernel import build_kernel
from gateway.node.live_plugins import LivePlugins
from gateway.node.metrics import metric_sources, metrics_factory, start_pushes
from gateway.node.pipeline import pipeline_context
from gateway.node.plugin_control import NodePlugins
from gateway.node.plugin_faults import PluginFaults
from gateway.node.ports import NodePorts
from gateway.node.processor_waits import ProcessorWaits
from gateway.node.protocols import LISTENERS, PROTOCOLS, Services
from gateway.node.protocols.amqp import AmqpProtocol
from gateway.node.protocols.mqtt import MqttProtocol, warn_of_anonymous
from gateway.node.publish_addresses import PublishAddressesOf
from gateway.node.reactor_watchdog import BLOCKED_S, ReactorWatchdog
from gateway.node.recording import node_recorder, recording_rules
from gateway.node.startup import Start
from gateway.node.store import INTERVAL_S as STORE_INTERVAL_S
from gateway.node.store import StoreFiles
from gateway.node.turn_schedule import schedule_of, watch_turns
from gateway.node.vhost_access import VhostAccess
from gateway.plugins.registry import PluginRegistry
from gateway.worker_process.process import WorkerProcess

_log: Final = StructuredLog("node")

#: How long a stopping broker waits for clients to close their connections, in seconds.
_DISCONNECT_TIMEOUT_S: Final = 2.0

#: Time for the answer to a request that stops the broker, in seconds.
_STOP_DELAY_S: Final = 0.2

#: Period over which the longest turn is reported, in seconds; up to twice as long.
_WATCH_INTERVAL_S: Final = 30.0


class Node:
    """One broker on one reactor. ``on_failure`` is called when it cannot continue and must be stopped.

    ``read`` reads the configuration again. ``host`` is the machine it runs on. ``on_stop`` is called when an operator
    stops the node over HTTP.
    """

    def __init__(
        self,
        configured: Configured,
        reactor: Any,  # Any: Twisted's interfaces are not types
        collector: GarbageCollector | None = None,
        read: Callable[[], Configured] | None = None,
        host: NodeHost | None = None,
    ) -> None:
        settings = configured.settings
        self._host = host = host or NodeHost()
        self.collector = collector or GarbageCollector()
        self.settings = settings
        self.on_failure: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.on_start_failed: Callable[[Exception], None] = lambda error: None
        self._reactor = reactor
        self._is_starting = True
        login = settings.login
        self._hashing = host.make_hashing(login.hashing_threads, login.max_waiting_hashes, self._call_in_kernel)
        self.passwords = PasswordVerifier(
            self._hashing, reactor.seconds, login.remember_passwords_s, login.password_hashing
        )
        registry = host.load_plugins(settings.plugins_dir)
        self._vhost_access = VhostAccess(settings, registry, self.passwords)
        self.store_files = StoreFiles(settings.storage.compact_at)
        self._store = host.open_store(settings, reactor, self.store_files)
        self._clock = clock = host.make_clock(reactor, lambda: self._turn.touch())
        self.broker = self.store_files.broker = self._vhost_access.broker = build_kernel(
            settings, self._store, clock, self._vhost_access.view
        )
        clock.on_fault = partial(self.broker.faults.contain, "timer")
        self.throttle = LoginThrottle(throttle_rules(settings), clock.monotonic_s, clock.call_later)
        self._vhost_access.throttle = self.throttle
        self.live_plugins = LivePlugins(self._vhost_access, registry, self.broker)
        self._plugin_faults = PluginFaults(self.live_plugins, settings.plugins.fault_limit)
        apply_access_settings(settings, self.broker, self.throttle)
        schedule = schedule_of(reactor)
        self._turn = Turn(self.broker.journal, schedule)
        self._turn_watch = watch_turns(schedule, clock, self.broker.journal)
        waits = ProcessorWaits()
        if host.has_watchdog:
            self.broker.faults.processor_wait_s = waits.recent_s
        self._watchdog = ReactorWatchdog(reactor.callFromThread, registry.plugin_at, BLOCKED_S, waits.sample)
        access = self._vhost_access
        services = Services(self.broker, self._turn, access.access_of, access.login_access, access.may_log_in_elsewhere)
        self._protocols = {protocol: protocol(services, settings) for protocol in PROTOCOLS}
        self._recorder = node_recorder(settings, clock)
        self._ports = NodePorts(settings, reactor, self._protocols, self._recorder)
        self._recovery = Recovery(self.broker, self._store.record_count())
        self._start = Start(reactor, self._recovery, self.collector.tick)
        self._worker = WorkerProcess(reactor, WORKER)
        self._archive = ArchiveService(settings, self.broker, self._worker, self._turn.touch)
        self._watermarks = Watermarks(
            self.broker.alarms,
            settings.data,
            memory_limit(settings.memory_high_watermark),
            settings.disk_free_limit,
            self.collector.collect_all,
            clock.monotonic_s,
            host.memory_used,
            host.disk_free,
        )
        self._statistics = Statistics(self.broker, reactor.seconds, settings.data)
        self._trace_files = TraceFiles(self.broker, settings.data / TRACE_FILES, settings.traces.max_file_size)
        reread = read or (lambda: configured)
        self.live_settings = LiveSettings(configured, reread, self._ports.tls_contexts, self._apply)
        self._maintenance = Maintenance(
            self._ports.listeners,
            self.broker.connections,
            clock.background,
            {listener.name for listener in LISTENERS}.__contains__,
            self._turn.touch,
        )
        self._context: ApiContext | None = None
        self._bridges = node_bridges(
            self.broker,
            self._amqp,
            self._mqtt.context.mapping_of,
            self._mqtt.context.exchange_of,
            reactor,
            self._turn.touch,
        )
        self._clockwork = self._wound_clockwork()
        self.broker.store_reports.on_failure = self._store_failed
        self.broker.on_vhost = self._vhost_added
        self.broker.events.subscribe(EventLog())
        self.broker.events.subscribe(access.forget_deleted)
        self.broker.events.subscribe(self._trace_files.forget_deleted)
        self.broker.events.subscribe(self.live_plugins.forget_deleted)
        self.broker.events.subscribe(self._plugin_faults)
        self.broker.events.subscribe(PluginAudit(self.broker))

    def _wound_clockwork(self) -> Clockwork:
        clockwork = Clockwork(self._reactor, self.broker.faults, self._turn, self._clock.monotonic_s)
        clockwork.add(STORE_INTERVAL_S, self.store_files.check)
        clockwork.add(_WATCH_INTERVAL_S, self._turn_watch.start_period)
        clockwork.add(SHORT_INTERVAL_S, self._check_memory)
        clockwork.add(PRUNING_INTERVAL_S, self.broker.audit.prune)
        clockwork.add(1 / TICKS_PER_S, self._tick_all)
        clockwork.add_sliced(SAMPLE_INTERVAL_S, self._statistics.sample)
        if self.settings.mqtt.sys_interval_s:
            sys_topics = self._mqtt.sys_topics(self._turn_watch, self._host.memory_used)
            clockwork.add_sliced(self.settings.mqtt.sys_interval_s, sys_topics.update, in_turns=True)
        return clockwork

    @property
    def _mqtt(self) -> MqttProtocol:
        mqtt = self._protocols[MqttProtocol]
        assert isinstance(mqtt, MqttProtocol)
        return mqtt

    @property
    def _amqp(self) -> AmqpProtocol:
        amqp = self._protocols[AmqpProtocol]
        assert isinstance(amqp, AmqpProtocol)
        return amqp

    def _vhost_added(self, vhost: VirtualHost) -> None:
        for protocol in self._protocols.values():
            protocol.vhost_added(vhost)

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses of the listeners: listener name to (host, port)."""
        return self._ports.listeners.addresses

    def start(self, ready: Callable[[], None], progress: Callable[[str], None] = lambda text: None) -> None:
        """Bind the ports and recover in slices; then accept connections and call ``ready``.

        Clients that connect during recovery wait for half a second and are then refused as not ready. ``progress``
        is called with a line of text every second. ``on_start_failed`` is called with the error if the start fails.
        """
        self._start.on_slow = partial(self._ports.serve_not_ready, self._recovery)
        self._start.progress = progress
        self._clock.hold()
        self._start.begin(self._starting(), ready, self.on_start_failed)

    def _starting(self) -> Iterator[None]:
        """Do the whole start, yielding between slices. No timer fires and nothing is committed during it."""
        self._ports.bind()
        yield from self._recovery.steps(self._store.recover())
        self._archive.start()
        create_defaults(self.settings, self.broker)
        if self.settings.load_definitions is not None:
            definitions = read_definitions(self.settings.load_definitions)
            record_definitions(self.broker.audit, definitions, self.settings.load_definitions)
            source = str(self.settings.load_definitions)
            yield from steps_of(definitions, self.broker, source, self.settings.default_vhost)
        ensure_cluster_id(self.broker)
        warn_of_logins_without_secret(self.settings, self.broker.directory)
        self._clock.release()
        self.broker.journal.flush()
        aside = len(self.broker.store_reports.set_aside)
        count = self._recovery.messages
        _log.info("recovered", vhosts=len(self.broker.vhost_by_name), messages=count, set_aside=aside)
        self._clockwork.start()
        self._vhost_access.log_inert_plugins()
        self._is_starting = self._vhost_access.is_lenient = False
        self._mqtt.start_topics()
        self._recorder.apply(recording_rules(self.settings))
        self._serve()
        self._bridges.start()
        if self._host.has_watchdog:
            self._watchdog.start()

    def stop(self, done: Callable[[], None]) -> None:
        """Stop listening, close the connections, commit staged changes, then call ``done``.

        A broker that is still starting writes nothing: the next start finds the same data.
        """
        self._watchdog.stop()
        self._ports.listeners.close()
        if self._is_starting:
            self._start.stop()
            self._close(done)
            return
        self._bridges.stop()
        self.broker.connections.force_close("broker forced connection closure with reason 'shutdown'")
        self._turn.end()
        self._wait_for_disconnects(self._reactor.seconds() + _DISCONNECT_TIMEOUT_S, done)

    def touch(self) -> None:
        """Schedule the end of the turn, for a change outside of the turns."""
        self._turn.touch()

    def _apply(self, settings: Settings) -> None:
        """Apply the settings that may change while the broker runs."""
        self.settings = settings
        self._watermarks.memory_limit = memory_limit(settings.memory_high_watermark)
        self._watermarks.disk_free_limit = settings.disk_free_limit
        self._watermarks.check()
        if (context := self._context) is not None:
            context.memory_limit = self._watermarks.memory_limit
            context.disk_free_limit = self._watermarks.disk_free_limit
            context.certificates = settings.tls.certificates
            context.max_message_size = settings.amqp.max_message_size
            context.shows_secrets = settings.management.show_secrets
        self._vhost_access.settings = settings
        self.broker.audit.rules = audit_rules(settings)
        self.broker.workbench.rules = workbench_rules(settings)
        self.broker.audit.prune()
        apply_access_settings(settings, self.broker, self.throttle)
        self.passwords.algorithm = settings.login.password_hashing
        self._recorder.apply(recording_rules(settings))
        for protocol in self._protocols.values():
            protocol.apply(settings)

    def info(self) -> dict[str, object]:
        """Return the state for a dump of the process: waiting work, open connections, failures."""
        return {
            "memory": self._host.memory_used(),
            "connections": len(self.broker.connections),
            "lsn": self.broker.journal.lsn,
            "durable": self.broker.journal.watermark,
            "alarms": self.broker.alarms.reason,
            "faults": self.broker.faults.total,
            "gc_frozen": self.collector.frozen,
            **self.collector.info(),
        }

    def _serve(self) -> None:
        """Serve clients at all bound ports."""
        warn_of_anonymous(self.settings)
        self._context = context = self._api_context()
        sources = metric_sources(context, self._turn_watch, self.store_files, self.live_plugins, self._plugin_faults)
        self._ports.serve(management_site(context), partial(metrics_factory, self.settings, sources))
        start_pushes(self.settings, sources, self._reactor, self._clockwork)

    def _api_context(self) -> ApiContext:
        settings = self.settings
        return ApiContext(
            broker=self.broker,
            login=self._vhost_access.login_access(),
            passwords=self.passwords,
            login_counts=partial(login_counts, self.throttle, self._hashing),
            access_of=self._vhost_access.access_of,
            statistics=self._statistics,
            topics_of=self._mqtt.context.mapping_of,
            publish_addresses=PublishAddressesOf(self._mqtt.context, lambda: self.settings.stomp),
            login_sessions=LoginSessions(
                self.broker.directory, self.broker.clock, settings.management.session_timeout_s
            ),
            trace_files=self._trace_files,
            pipeline=pipeline_context(settings, self.broker.clock, self._worker, self._archive),
            touch=self._turn.touch,
            addresses=lambda: self.addresses,
            memory_limit=self._watermarks.memory_limit,
            disk_free_limit=self._watermarks.disk_free_limit,
            data=settings.data,
            started_at_ms=self.broker.clock.wall_ms(),
            certificates=settings.tls.certificates,
            max_message_size=settings.amqp.max_message_size,
            shows_secrets=settings.management.show_secrets,
            http=http_limits(settings),
            cross_origin_policy=http_cross_origin_policy(settings),
            reactor=self._reactor,
            monotonic_s=self._clock.monotonic_s,
            collections=self.collector.info,
            turns=self._turn_watch.shown,
            store_info=self.store_files.info,
            compact_store=self.store_files.compact,
            inert_plugins=self._vhost_access.inert_plugins,
            plugins=NodePlugins(self.live_plugins, self._vhost_access, self._plugin_faults),
            services_of=lambda vhost: self._vhost_access.view_in_use(vhost).services,
            bridges=self._bridges,
            control=self._control(registry=self.live_plugins.registry),
        )

    def _control(self, registry: PluginRegistry) -> RunningNode:
        def stop() -> None:
            self._reactor.callLater(_STOP_DELAY_S, self.on_stop)

        recorder, secrets = self._recorder, registry.secret_settings
        return RunningNode(self.broker, self.live_settings, self._maintenance, recorder, secrets, stop)

    # Clockwork

    def _tick_all(self) -> None:
        for peer in self.broker.connections:
            try:
                peer.tick()
            except Exception:  # isolate connections: close the failing one and log the error
                peer.fail()

    def _check_memory(self) -> None:
        """Collect garbage that is due, and compare memory and disk with their limits."""
        self.collector.tick(is_idle=not len(self.broker.connections))
        self._watermarks.tick()

    def _call_in_kernel(self, call: Callable[[], None]) -> None:
        """Run a call on the kernel's thread, in a turn. Called from any thread."""

        def run() -> None:
            try:
                call()
            except Exception as error:  # the reactor would log it as an error of its own
                self.broker.faults.contain("call from a thread", error)
            self._turn.touch()

        self._reactor.callFromThread(run)

    def _store_failed(self, reason: str) -> None:
        """Stop the broker: without a working store it cannot keep its guarantees."""
        _log.error("the store failed, the broker stops", reason=reason)
        self.on_failure()

    def _wait_for_disconnects(self, deadline: float, done: Callable[[], None]) -> None:
        if len(self.broker.connections) and self._reactor.seconds() < deadline:
            self._reactor.callLater(0.02, self._wait_for_disconnects, deadline, done)
            return
        self._clockwork.stop()
        self._turn.end()
        self._vhost_access.close_all()
        self.broker.stop()
        self._close(done)

    def _close(self, done: Callable[[], None]) -> None:
        self._trace_files.close()
        self._recorder.stop(waits=True)
        self._worker.stop()
        self._hashing.stop()
        self._store.close()
        done()
