"""One broker with its store, kernel, plugins and adapters. ``gateway.node.app`` or a test starts and stops it."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from gateway.config import Configured, Settings
from gateway.kernel.broker.connection_ticks import ConnectionTicks
from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.logs import StructuredLog
from gateway.management.context import ApiContext
from gateway.management.http.site import management_site
from gateway.management.statistics.sampler import INTERVAL_S as SAMPLE_INTERVAL_S
from gateway.net.watermarks import SHORT_INTERVAL_S, memory_limit
from gateway.node.access import apply_access_settings
from gateway.node.api import api_context
from gateway.node.audit import PRUNING_INTERVAL_S, audit_rules, workbench_rules
from gateway.node.clockwork import Clockwork
from gateway.node.cluster_id import ensure_cluster_id
from gateway.node.control.live_settings import LiveSettings, ReloadResult
from gateway.node.control.maintenance import Maintenance
from gateway.node.control.node_control import RunningNode
from gateway.node.defaults import apply_vhost_settings, create_defaults, everything
from gateway.node.exposure import warn_of_logins_without_secret
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.last_confirms import LastConfirms
from gateway.node.loading import loading
from gateway.node.metrics import metric_sources, metrics_factory, start_pushes
from gateway.node.parts import NodeParts
from gateway.node.protocols import LISTENERS
from gateway.node.protocols.mqtt import warn_of_anonymous
from gateway.node.recording import recording_rules
from gateway.node.startup import Start
from gateway.node.store import INTERVAL_S as STORE_INTERVAL_S

_log: Final = StructuredLog("node")

#: How long a stopping broker waits for clients to close their connections, in seconds.
_DISCONNECT_TIMEOUT_S: Final = 2.0

#: How long it waits for jobs that they left behind, such as the return of very many unacknowledged messages.
_JOBS_TIMEOUT_S: Final = 5.0

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
        self.settings = configured.settings
        self.on_failure: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.on_start_failed: Callable[[Exception], None] = lambda error: None
        parts = NodeParts(self.settings, reactor, collector or GarbageCollector(), host or NodeHost())
        self._parts = parts
        self.broker = parts.broker
        self.passwords = parts.passwords
        self.live_plugins = parts.live_plugins
        self._reactor = reactor
        self._turn = parts.turn
        self._ports = parts.ports
        self._vhost_access = parts.vhost_access
        self._watermarks = parts.watermarks
        self._recorder = parts.recorder
        self._last_confirms = LastConfirms(parts.broker, reactor, parts.turn.end)
        self._is_starting = True
        self._start = Start(reactor, parts.recovery, parts.collector.tick)
        self.live_settings = LiveSettings(
            configured, read or (lambda: configured), parts.ports.tls_contexts, self._apply
        )
        self._maintenance = Maintenance(
            parts.ports.listeners,
            parts.broker.connections,
            parts.clock.background,
            {listener.name for listener in LISTENERS}.__contains__,
            parts.turn.touch,
        )
        self._context: ApiContext | None = None
        self._clockwork = self._wound_clockwork()
        self.broker.store_reports.on_failure = self._store_failed

    def _wound_clockwork(self) -> Clockwork:
        clockwork = Clockwork(self._reactor, self.broker.faults, self._turn, self._parts.slices)
        clockwork.add(STORE_INTERVAL_S, self._parts.store_files.check)
        clockwork.add(_WATCH_INTERVAL_S, self._parts.turn_watch.start_period)
        clockwork.add_paced(1 / TICKS_PER_S, SHORT_INTERVAL_S, self._check_memory)
        clockwork.add(PRUNING_INTERVAL_S, self.broker.audit.prune)
        ticks = ConnectionTicks(self.broker.connections, partial(self._reactor.callLater, 0))
        clockwork.add(1 / TICKS_PER_S, ticks.tick_all)
        clockwork.add_sliced(SAMPLE_INTERVAL_S, self._parts.statistics.sample)
        if self.settings.mqtt.sys_interval_s:
            sys_topics = self._parts.mqtt.sys_topics(self._parts.turn_watch, self._parts.host.memory_used)
            clockwork.add_sliced(self.settings.mqtt.sys_interval_s, sys_topics.update, in_turns=True)
        return clockwork

    @property
    def node(self) -> "Node":
        """This node: a process without a cluster runs no other one."""
        return self

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses of the listeners: listener name to (host, port)."""
        return self._ports.listeners.addresses

    def start(self, ready: Callable[[], None], progress: Callable[[str], None] = lambda text: None) -> None:
        """Bind the ports and recover in slices; then accept connections and call ``ready``.

        Clients that connect during recovery wait for half a second and are then refused as not ready. ``progress``
        is called with a line of text every second. ``on_start_failed`` is called with the error if the start fails.
        """
        self._start.on_slow = partial(self._ports.serve_not_ready, self._parts.recovery)
        self._start.progress = progress
        self._parts.clock.hold()
        self._start.begin(self._starting(), ready, self.on_start_failed)

    def _starting(self) -> Iterator[None]:
        """Do the whole start, yielding between slices. No timer fires and nothing is committed during it."""
        self._ports.bind()
        yield from self._parts.recovery.steps(self._parts.store.recover_runs())
        self._parts.archive.start()
        place = self._parts.host.place
        if place is None or place.is_first:
            is_new = not self.broker.vhost_by_name and (place is None or not place.has_vhosts)
            create_defaults(self.settings, self.broker, is_new=is_new)
        if place is not None:
            yield from place.taking(self.broker)
        apply_vhost_settings(self.settings, self.broker, everything if place is None else place.has)
        if self.settings.load_definitions is not None:
            default = self.settings.default_vhost
            yield from loading(self.settings.load_definitions, default, self.broker, place)
        if place is None or place.is_first:
            ensure_cluster_id(self.broker)
        warn_of_logins_without_secret(self.settings, self.broker.directory)
        self._parts.clock.release()
        self.broker.journal.flush()
        aside = len(self.broker.store_reports.set_aside)
        count = self._parts.recovery.messages
        _log.info("recovered", vhosts=len(self.broker.vhost_by_name), messages=count, set_aside=aside)
        self._clockwork.start()
        self._vhost_access.log_inert_plugins()
        self._is_starting = self._vhost_access.is_lenient = False
        self._parts.mqtt.start_topics()
        self._recorder.apply(recording_rules(self.settings))
        self._serve()
        self._parts.bridges.start()
        if self._parts.host.has_watchdog:
            self._parts.watchdog.start()

    def stop(self, done: Callable[[], None]) -> None:
        """Stop listening, close the connections, commit staged changes, then call ``done``.

        A broker that is still starting writes nothing: the next start finds the same data.
        """
        self._parts.watchdog.stop()
        self._ports.listeners.close()
        if self._is_starting:
            self._start.stop()
            self._close(done)
            return
        self._parts.bridges.stop()
        if self._context is not None:
            self._context.pipeline.runs.stop()
        self._last_confirms.wait(partial(self._close_connections, done))

    def _close_connections(self, done: Callable[[], None]) -> None:
        self.broker.connections.force_close("broker forced connection closure with reason 'shutdown'")
        self._turn.end()
        self._wait_for_disconnects(self._reactor.seconds() + _DISCONNECT_TIMEOUT_S, done)

    def reload(self) -> ReloadResult:
        """Read the configuration and the certificates again.

        :raises GatewayError: if something is invalid; then nothing has changed.
        """
        return self.live_settings.reload()

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
        apply_access_settings(settings, self.broker, self._parts.throttle)
        self.passwords.algorithm = settings.login.password_hashing
        self._recorder.apply(recording_rules(settings))
        for protocol in self._parts.protocols.values():
            protocol.apply(settings)

    def info(self) -> dict[str, object]:
        """Return the state for a dump of the process: waiting work, open connections, failures."""
        return {
            "memory": self._parts.host.memory_used(),
            "connections": len(self.broker.connections),
            "lsn": self.broker.journal.lsn,
            "durable": self.broker.journal.watermark,
            "alarms": self.broker.alarms.reason,
            "faults": self.broker.faults.total,
            "worker_pid": self._parts.worker.process_id,
            "gc_frozen": self._parts.collector.frozen,
            **self._parts.collector.info(),
        }

    def _serve(self) -> None:
        """Serve clients at all bound ports."""
        warn_of_anonymous(self.settings)
        parts = self._parts
        self._context = context = api_context(parts, self.settings, lambda: self.settings, self._control())
        sources = metric_sources(context, parts.turn_watch, parts.store_files, parts.live_plugins, parts.plugin_faults)
        self._ports.serve(management_site(context), partial(metrics_factory, self.settings, sources))
        start_pushes(self.settings, sources, self._reactor, self._clockwork)

    def _control(self) -> RunningNode:
        def stop() -> None:
            self._reactor.callLater(_STOP_DELAY_S, self.on_stop)

        secrets = self.live_plugins.registry.secret_settings
        return RunningNode(self.broker, self.live_settings, self._maintenance, self._recorder, secrets, stop)

    # Clockwork

    def _check_memory(self) -> bool:
        """Collect garbage that is due, and compare memory and disk with their limits; return whether to do so soon."""
        is_idle = not len(self.broker.connections) and not self._ports.http_clients
        allocates = self._parts.collector.tick(is_idle)
        return self._watermarks.tick() or allocates

    def _store_failed(self, reason: str) -> None:
        """Stop the broker: without a working store it cannot keep its guarantees."""
        _log.error("the store failed, the broker stops", reason=reason)
        self._last_confirms.end()
        self.on_failure()

    def _wait_for_disconnects(self, deadline: float, done: Callable[[], None]) -> None:
        if len(self.broker.connections) and self._reactor.seconds() < deadline:
            self._reactor.callLater(0.02, self._wait_for_disconnects, deadline, done)
            return
        for peer in self.broker.connections:  # its last answers may wait for a store that failed
            peer.give_up("the broker stops")
        self._ports.close_http_clients()
        self._wait_for_jobs(self._reactor.seconds() + _JOBS_TIMEOUT_S, done)

    def _wait_for_jobs(self, deadline: float, done: Callable[[], None]) -> None:
        """Let the jobs in the background finish, unless that takes too long or the store has failed."""
        jobs = len(self.broker.clock.background)
        if jobs and not self.broker.journal.has_failed and self._reactor.seconds() < deadline:
            self._reactor.callLater(0.02, self._wait_for_jobs, deadline, done)
            return
        if jobs:
            _log.warning("the broker stops before its long work is finished", jobs=jobs)
        self._clockwork.stop()
        self._turn.end()
        self._vhost_access.close_all()
        self.broker.stop()
        self._close(done)

    def _close(self, done: Callable[[], None]) -> None:
        self._parts.trace_files.close()
        self._parts.depth_files.stop(self.broker.clock.wall_ms())
        self._recorder.stop(waits=True)
        self._parts.worker.stop()
        if self._context is not None:
            self._context.pipeline.staging.stop()
        self._parts.hashing.stop()
        self._parts.host.drain_store(partial(self._close_store, done))

    def _close_store(self, done: Callable[[], None]) -> None:
        self._parts.store.close()
        done()
