"""One broker with its store, kernel, plugins and adapters. ``gateway.node.app`` or a test starts and stops it."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from twisted.internet.task import Cooperator, LoopingCall

from gateway.access import Access, HashingThreads, LoginThrottle, PasswordVerifier
from gateway.access.passwords import hash_password
from gateway.access.scram import kept_credential
from gateway.archive.service import WORKER, ArchiveService, archive_rules
from gateway.config import Settings
from gateway.config.mqtt import WebMqtt
from gateway.config.stomp import WebStomp
from gateway.definitions import read_definitions, steps_of
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.kernel.broker.recovery import Recovery
from gateway.kernel.errors import StorageError
from gateway.kernel.events import Event
from gateway.kernel.journal.records import PermissionRecord, UserRecord
from gateway.kernel.journal.store import Store
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.native_header import PLAIN
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.logs import StructuredLog
from gateway.management.http.site import management_site
from gateway.management.scope import ApiContext
from gateway.management.statistics.sampler import INTERVAL_S as SAMPLE_INTERVAL_S
from gateway.management.statistics.sampler import Statistics
from gateway.net import websocket
from gateway.net.certificates import TlsContext
from gateway.net.clock import ReactorClock
from gateway.net.listeners import Listeners
from gateway.net.loop import Loop
from gateway.net.reactor import TurnReactor
from gateway.net.turn import Schedule, Turn
from gateway.net.turn_watch import TurnWatch
from gateway.net.watermarks import SHORT_INTERVAL_S, Watermarks, memory_limit, memory_used
from gateway.net.websocket import WebSocketFactory
from gateway.node.access import apply_access_settings, throttle_rules
from gateway.node.data_directory import make_private
from gateway.node.event_log import EventLog
from gateway.node.exposure import warn_of_logins_without_secret
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.http import http_limits, http_screening, web_origins
from gateway.node.mqtt import bound_sessions, mqtt_settings, sys_topics, warn_of_anonymous, with_live_limits
from gateway.node.pipeline import pipeline_context
from gateway.node.reload import reload
from gateway.node.startup import NotReadyListeners, Start
from gateway.node.stomp import stomp_settings
from gateway.node.store import INTERVAL_S as STORE_INTERVAL_S
from gateway.node.store import StoreFiles, ignoring_read_errors
from gateway.patterns import compile_pattern
from gateway.plugins.registry import PluginRegistry, PluginView, load_plugins
from gateway.version import VERSION
from gateway.worker_process.process import WorkerProcess
from gateway_amqp.header import AMQP
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.server import AmqpFactory
from gateway_mqtt.server import MqttFactory
from gateway_mqtt.translation.header import MQTT
from gateway_stomp.header import STOMP
from gateway_stomp.listener_context import StompContext
from gateway_stomp.server import StompFactory

_log: Final = StructuredLog("node")

PLAIN_LISTENERS: Final = ("amqp", "mqtt", "web_mqtt", "stomp", "web_stomp")
TLS_LISTENERS: Final = ("amqps", "mqtts", "web_mqtts", "stomps", "web_stomps")

PLAIN_MECHANISMS: Final = "PLAIN AMQPLAIN"

#: How long a stopping broker waits for clients to close their connections, in seconds.
_DISCONNECT_TIMEOUT_S: Final = 2.0

#: Period over which the longest turn is reported, in seconds; up to twice as long.
_WATCH_INTERVAL_S: Final = 30.0


class Node:
    """One broker on one reactor. ``on_failure`` is called when it cannot continue and must be stopped."""

    def __init__(
        self,
        settings: Settings,
        reactor: Any,  # Any: Twisted's interfaces are not types
        collector: GarbageCollector | None = None,
    ) -> None:
        self.collector = collector or GarbageCollector()
        self.settings = settings
        self._reactor = reactor
        self._registry: PluginRegistry = load_plugins(settings.plugins_dir, is_lenient=True)
        self._is_starting = True
        login = settings.login
        self._hashing = HashingThreads(login.hashing_threads, login.max_waiting_hashes, self._call_in_kernel)
        self.passwords = PasswordVerifier(
            self._hashing, reactor.seconds, login.remember_passwords_s, login.password_hashing
        )
        self._views: dict[str, PluginView] = {}
        self._access_by_vhost: dict[str, Access] = {}
        self.store_files = StoreFiles(settings.storage.compact_at)
        self._store = self._open_store()
        self._clock = clock = ReactorClock(reactor, lambda: self._turn.touch())
        self.broker = Broker(
            self._store,
            clock,
            {AMQP.name: AMQP, MQTT.name: MQTT, STOMP.name: STOMP, PLAIN.name: PLAIN},
            self._view,
            node=settings.node,
            compile_pattern=compile_pattern,
            archive_rules=archive_rules(settings),
            queue_rules=QueueRules(
                resident_messages=settings.queues.resident_messages,
                permits_transient=settings.deprecated_features.permit_transient_nonexcl_queues,
                default_type=settings.queues.default_queue_type,
                segment_size=settings.streams.segment_size,
                reserve=settings.queues.reserve,
            ),
        )
        self.store_files.broker = self.broker
        clock.on_fault = partial(self.broker.faults.contain, "timer")
        self.throttle = LoginThrottle(throttle_rules(settings), clock.monotonic_s, clock.call_later)
        apply_access_settings(settings, self.broker, self.throttle)
        schedule = reactor.loop if isinstance(reactor, TurnReactor) else _DelayedCalls(reactor)
        self._turn = Turn(self.broker.journal, schedule)
        self._turn_watch = self._watch_turns(schedule, clock)
        # The clock of connections outside the turns: it is never paused.
        wire_clock = ReactorClock(reactor, lambda: None)
        self._listeners = Listeners(reactor, wire_clock, settings.bind)
        self._recovery = Recovery(self.broker, self._store.record_count())
        self._start = Start(reactor, self._recovery, self.collector.tick)
        self._not_ready = NotReadyListeners(settings, reactor, wire_clock, self._recovery)
        self._worker = WorkerProcess(reactor, WORKER)
        self._archive = ArchiveService(settings, self.broker, self._worker, self._turn.touch)
        self.on_failure: Callable[[], None] = lambda: None
        self.on_start_failed: Callable[[Exception], None] = lambda error: None
        self.broker.on_failure = self._store_failed
        self.broker.events.subscribe(EventLog())
        self.broker.events.subscribe(self._forget_view)
        self.broker.on_vhost = lambda vhost: bound_sessions(settings, vhost)
        self._watermarks = Watermarks(
            self.broker.alarms,
            settings.data,
            memory_limit(settings.memory_high_watermark),
            settings.disk_free_limit,
            self.collector.collect_all,
        )
        self._watch = LoopingCall(partial(self._contain_faults, self._check_memory))
        self._tick = LoopingCall(partial(self._contain_faults, self._tick_all))
        self._compacting = LoopingCall(partial(self._contain_faults, ignoring_read_errors(self.store_files.check)))
        self._compacting.clock = reactor
        self._statistics = Statistics(self.broker, reactor.seconds, settings.data)
        slices = Cooperator(scheduler=lambda call: reactor.callLater(0, call))
        self._sampling = LoopingCall(lambda: slices.coiterate(self._contain_step_faults(self._statistics.look())))
        self._mqtt = mqtt_settings(settings, self.broker, self._access_of)
        self._sys_topics = sys_topics(self._mqtt, self._turn_watch)
        self._mqtt_factory = MqttFactory(self._mqtt, self._turn)
        self._stomp_factory: StompFactory | None = None
        self._amqp_factories: list[AmqpFactory] = []
        self._tls_contexts: list[TlsContext] = []
        self._context: ApiContext | None = None
        self._sys_topics_loop = LoopingCall(
            lambda: slices.coiterate(self._contain_step_faults(self._ending_turns(self._sys_topics.tell())))
        )
        self._turn_reports = LoopingCall(self._turn_watch.look)
        self._turn_reports.clock = self._watch.clock = self._tick.clock = self._sampling.clock = (
            self._sys_topics_loop.clock
        ) = reactor

    def _watch_turns(self, schedule: Schedule, clock: ReactorClock) -> TurnWatch:
        """Measure the turns of the loop and log long ones with their causes."""
        watch = schedule.watch if isinstance(schedule, Loop) else TurnWatch()
        watch.on_slow = _log_slow_turn
        clock.on_slow = self.broker.journal.budget.on_slow = watch.part
        clock.background.on_slice = lambda job, seconds: watch.part(f"background work {job}", seconds)
        return watch

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses of the listeners: listener name to (host, port)."""
        return self._listeners.addresses

    def start(self, ready: Callable[[], None], progress: Callable[[str], None] = lambda text: None) -> None:
        """Bind the ports and recover in slices; then accept connections and call ``ready``.

        Clients that connect during recovery wait for half a second and are then refused as not ready. ``progress``
        is called with a line of text every second. ``on_start_failed`` is called with the error if the start fails.
        """
        self._start.on_slow = self._serve_not_ready
        self._start.progress = progress
        self._clock.hold()
        self._start.begin(self._starting(), ready, self.on_start_failed)

    def _starting(self) -> Iterator[None]:
        """Do the whole start, yielding between slices. No timer fires and nothing is committed during it."""
        self._bind()
        yield from self._recovery.steps(self._store.recover())
        self._archive.start()
        self._create_defaults()
        if self.settings.load_definitions is not None:
            definitions = read_definitions(self.settings.load_definitions)
            source = str(self.settings.load_definitions)
            yield from steps_of(definitions, self.broker, source, self.settings.default_vhost)
        warn_of_logins_without_secret(self.settings, self.broker.directory)
        self._clock.release()
        self.broker.journal.flush()
        aside = len(self.broker.set_aside)
        count = self._recovery.messages
        _log.info("recovered", vhosts=len(self.broker.vhost_by_name), messages=count, set_aside=aside)
        self._start_periodic_calls()
        self._log_inert_plugins()
        self._is_starting = False
        self._listen()

    def _start_periodic_calls(self) -> None:
        intervals = [
            (self._compacting, STORE_INTERVAL_S),
            (self._turn_reports, _WATCH_INTERVAL_S),
            (self._watch, SHORT_INTERVAL_S),
            (self._tick, 1 / TICKS_PER_S),
            (self._sampling, SAMPLE_INTERVAL_S),
        ]
        if self.settings.mqtt.sys_interval_s:
            intervals.append((self._sys_topics_loop, self.settings.mqtt.sys_interval_s))
        for loop, interval_s in intervals:
            loop.start(interval_s).addErrback(lambda failure: _log.error("clockwork stopped", error=failure.value))

    def stop(self, done: Callable[[], None]) -> None:
        """Stop listening, close the connections, commit staged changes, then call ``done``.

        A broker that is still starting writes nothing: the next start finds the same data.
        """
        self._listeners.close()
        if self._is_starting:
            self._start.stop()
            self._close(done)
            return
        self.broker.connections.force_close("broker forced connection closure with reason 'shutdown'")
        self._turn.end()
        self._wait_for_disconnects(self._reactor.seconds() + _DISCONNECT_TIMEOUT_S, done)

    def reload(self, read: Callable[[], Settings]) -> None:
        """Reload the settings, the certificates and the log file; log the changes."""
        self.settings = reload(self.settings, read, self._tls_contexts, self._apply)

    def _apply(self, settings: Settings) -> None:
        """Apply the settings that may change while the broker runs."""
        self.settings = settings
        self._watermarks.memory_limit = memory_limit(settings.memory_high_watermark)
        self._watermarks.disk_free_limit = settings.disk_free_limit
        self._watermarks.check()
        for factory in self._amqp_factories:
            is_plain = factory is self._amqp_factories[0]
            factory.settings = self._amqp_settings(PLAIN_MECHANISMS if is_plain else self._tls_mechanisms())
        if (context := self._context) is not None:
            context.memory_limit = self._watermarks.memory_limit
            context.disk_free_limit = self._watermarks.disk_free_limit
            context.certificate = settings.tls.certificate
            context.max_message_size = settings.amqp.max_message_size
        apply_access_settings(settings, self.broker, self.throttle)
        self.passwords.algorithm = settings.login.password_hashing
        self._mqtt_factory.settings = with_live_limits(self._mqtt, settings)
        for vhost in self.broker.vhost_by_name.values():
            bound_sessions(settings, vhost)
        if self._stomp_factory is not None:
            self._stomp_factory.settings = self._stomp_settings()

    def facts(self) -> dict[str, object]:
        """Return the state for a dump of the process: waiting work, open connections, failures."""
        return {
            "memory": memory_used(),
            "connections": len(self.broker.connections),
            "lsn": self.broker.journal.lsn,
            "durable": self.broker.journal.watermark,
            "alarms": self.broker.alarms.reason,
            "faults": self.broker.faults.total,
            "gc_frozen": self.collector.frozen,
            **self.collector.facts(),
        }

    # Parts

    def _open_store(self) -> Store:
        data = self.settings.data
        changed = 0
        try:
            changed = make_private(data)
        except PermissionError as error:
            if not data.is_dir():
                raise StorageError(f"the data directory {data} cannot be used: {error.strerror}") from None
            _log.warning("data directory open to others", directory=str(data), reason="it is another user's")
        except OSError as error:
            raise StorageError(f"the data directory {data} cannot be used: {error.strerror}") from None
        if changed:
            _log.warning("data directory made private", directory=str(data), entries=changed)
        if self.settings.storage.engine == "memory":
            from gateway_memory import MemoryStore

            return MemoryStore(defer=lambda call: self._reactor.callLater(0, call))
        from gateway_lmdb import LmdbStore

        call, log_progress = self._reactor.callFromThread, self.store_files.log_progress
        self.store_files.store = LmdbStore(data, call_in_kernel=call, on_compaction=log_progress)
        return self.store_files.store

    def _view(self, vhost: str, enabled: Mapping[str, Mapping[str, Value]]) -> PluginView:
        """Return the plugins of a virtual host: those stored and those the configuration adds."""
        configured = self.settings.vhosts.get(vhost)
        plugins: dict[str, Value] = {name: dict(settings) for name, settings in enabled.items()}
        plugins.update(configured.plugins if configured is not None else {})
        view = self._registry.view(vhost, plugins, is_lenient=self._is_starting)
        self._views[vhost] = view
        self._access_by_vhost[vhost] = self._access(view, vhost)
        return view

    def _log_inert_plugins(self) -> None:
        """Log the plugins that are unavailable, and the consequences."""
        for name, reason in self._registry.broken.items():
            _log.error("plugin not loaded", plugin=name, reason=reason)
        for vhost, view in self._views.items():
            for name, reason in view.inert.items():
                _log.error("plugin inert", vhost=vhost, plugin=name, reason=reason)
            if view.objection:
                _log.error("virtual host refuses all logins", vhost=vhost, reason=view.objection)

    def _inert_plugins(self, vhost: str) -> Mapping[str, str]:
        """Return a virtual host's unavailable plugins and the reasons."""
        view = self._views.get(vhost)
        return {} if view is None else view.inert

    def _access_of(self, vhost: str) -> Access:
        """Return the authentication and authorization of a virtual host."""
        return self._access_by_vhost[vhost]

    def _access(self, view: PluginView, vhost: str) -> Access:
        directory, changed = self.broker.directory, partial(self.broker.permissions_changed, vhost)
        loopback_users = frozenset(self.settings.loopback_users)
        authenticators = view.authenticators(directory, self.passwords)
        methods, authorizers = view.authentication_methods(directory), view.authorizers(directory, changed)

        def failed(kind: str, part: object, error: BaseException) -> None:
            self.broker.faults.contain_in_part(kind, error, vhost, part)

        return Access(
            authenticators,
            authorizers,
            loopback_users,
            methods,
            failed,
            closed=view.objection,
            throttle=self.throttle,
            trusts_loopback=self.settings.login.trust_loopback,
        )

    def _login_access(self) -> Access:
        """Return the default virtual host's authentication, for logins before the virtual host is known."""
        name = self.settings.default_vhost
        return self._access_of(name) if name in self._views else self._access(self._registry.view("", {}), "")

    def _may_log_in_elsewhere(self) -> bool:
        """Return whether another virtual host might accept a user that the default one does not have."""
        return any(name != self.settings.default_vhost and self._enables_plugins(name) for name in self._views)

    def _enables_plugins(self, vhost: str) -> bool:
        configured, existing = self.settings.vhosts.get(vhost), self.broker.vhost_by_name.get(vhost)
        # Definitions may be checked for a virtual host that does not exist yet.
        stored = existing is not None and existing.record.plugins
        return bool(stored or (configured is not None and configured.plugins))

    def _forget_view(self, event: Event) -> None:
        if event.name == "vhost.deleted":
            self._views.pop(event.vhost, None)
            self._access_by_vhost.pop(event.vhost, None)

    def _create_defaults(self) -> None:
        """Create the first virtual host and user in an empty store, and the virtual hosts in the settings."""
        settings, broker = self.settings, self.broker
        if broker.directory.secret("scram") is None:
            broker.directory.put_secret("scram", secrets.token_bytes(32))
        if not broker.vhost_by_name:
            broker.declare_vhost(settings.default_vhost, description="Default virtual host")
            if settings.default_user:
                password = settings.default_pass.get_secret_value()
                algorithm = settings.login.password_hashing
                hash, credential = hash_password(password, algorithm), kept_credential(password, "", None)
                tags: list[Value] = list(settings.default_user_tags)
                user = UserRecord(settings.default_user, hash, algorithm, tags, {}, credential)
                broker.directory.put_user(user)
                may = settings.default_permissions
                broker.directory.put_permission(
                    PermissionRecord(settings.default_vhost, settings.default_user, may.configure, may.write, may.read)
                )
        for name, configured in settings.vhosts.items():
            if broker.declare_vhost(name).record.tracing != configured.tracing:
                broker.trace(name, configured.tracing)
            if broker.vhost(name).record.trace_table != configured.trace_table:
                broker.trace_to_table(name, configured.trace_table)

    # Listeners

    def _bind(self) -> None:
        """Bind the ports that are not off."""
        settings = self.settings
        names = PLAIN_LISTENERS if settings.tls.certificate is None else (*PLAIN_LISTENERS, *TLS_LISTENERS)
        for name in (*names, "management"):
            port = getattr(settings, name).port
            if port is not None:
                self._listeners.bind(name, port)

    def _listen(self) -> None:
        """Accept connections on the enabled ports. Each protocol is served with and without TLS."""
        settings, tls = self.settings, self.settings.tls
        warn_of_anonymous(settings)
        mqtt = self._mqtt_factory
        stomp = self._stomp_factory = StompFactory(self._stomp_settings(), self._turn)
        web_mqtt = self._web(mqtt, websocket.MQTT, settings.web_mqtt, settings.mqtt.login_timeout_s)
        web_stomp = self._web(stomp, websocket.STOMP, settings.web_stomp, settings.stomp.login_timeout_s)
        self._open("amqp", settings.amqp.port, self._amqp(PLAIN_MECHANISMS), settings.amqp.proxy_protocol)
        self._open("mqtt", settings.mqtt.port, mqtt, settings.mqtt.proxy_protocol)
        self._open("web_mqtt", settings.web_mqtt.port, web_mqtt, settings.web_mqtt.proxy_protocol)
        self._open("stomp", settings.stomp.port, stomp, settings.stomp.proxy_protocol)
        self._open("web_stomp", settings.web_stomp.port, web_stomp, settings.web_stomp.proxy_protocol)
        if tls.certificate is not None:
            options = self._tls_context()
            amqps = self._amqp(self._tls_mechanisms())
            self._open("amqps", settings.amqps.port, amqps, settings.amqp.proxy_protocol, options)
            self._open("mqtts", settings.mqtts.port, mqtt, settings.mqtt.proxy_protocol, options)
            self._open("web_mqtts", settings.web_mqtts.port, web_mqtt, settings.web_mqtt.proxy_protocol, options)
            self._open("stomps", settings.stomps.port, stomp, settings.stomp.proxy_protocol, options)
            self._open("web_stomps", settings.web_stomps.port, web_stomp, settings.web_stomp.proxy_protocol, options)
        self._open("management", settings.management.port, self._management())

    def _serve_not_ready(self) -> None:
        """Answer on all ports that the broker is not ready."""
        for name in self.addresses:
            tls = self._tls_context() if name in TLS_LISTENERS else None
            self._listeners.serve(name, self._not_ready.factory(name), tls, is_proxied=self._not_ready.is_proxied(name))

    def _tls_context(self) -> TlsContext:
        """Return the TLS context of all listeners, created on first use."""
        if not self._tls_contexts:
            self._tls_contexts.append(TlsContext(self.settings.tls))
        return self._tls_contexts[0]

    def _open(self, name: str, port: int | None, factory: Any, is_proxied: bool = False, tls: Any = None) -> None:
        if port is not None:
            self._listeners.serve(name, factory, tls, is_proxied=is_proxied)

    def _web(
        self, factory: Any, dialect: websocket.Dialect, web: WebMqtt | WebStomp, timeout_s: float
    ) -> WebSocketFactory:
        return WebSocketFactory(factory, dialect, web.path, self.broker.clock, timeout_s, web_origins(web))

    def _management(self) -> Any:
        settings = self.settings
        self._context = ApiContext(
            broker=self.broker,
            login=self._login_access(),
            passwords=self.passwords,
            login_counts=self._login_counts,
            access_of=self._access_of,
            statistics=self._statistics,
            topics_of=self._mqtt.mapping_of,
            pipeline=pipeline_context(settings, self.broker.clock, self._worker, self._archive),
            touch=self._turn.touch,
            addresses=lambda: self.addresses,
            memory_limit=self._watermarks.memory_limit,
            disk_free_limit=self._watermarks.disk_free_limit,
            data=settings.data,
            started_at_ms=self.broker.clock.wall_ms(),
            certificate=settings.tls.certificate,
            max_message_size=settings.amqp.max_message_size,
            http=http_limits(settings),
            screening=http_screening(settings),
            reactor=self._reactor,
            collections=self.collector.facts,
            turns=self._turn_watch.shown,
            store_facts=self.store_files.facts,
            compact_store=self.store_files.compact,
            inert_plugins=self._inert_plugins,
        )
        return management_site(self._context)

    def _stomp_settings(self) -> StompContext:
        return stomp_settings(self.settings, self.broker, self._access_of, self._login_access())

    def _amqp(self, mechanisms: str) -> AmqpFactory:
        factory = AmqpFactory(self._amqp_settings(mechanisms), self._turn)
        self._amqp_factories.append(factory)
        return factory

    def _tls_mechanisms(self) -> str:
        return PLAIN_MECHANISMS if self.settings.tls.verify == "off" else f"EXTERNAL {PLAIN_MECHANISMS}"

    def _amqp_settings(self, mechanisms: str) -> AmqpContext:
        amqp = self.settings.amqp
        return AmqpContext(
            broker=self.broker,
            login=self._login_access(),
            judges_late=self._may_log_in_elsewhere,
            access_of=self._access_of,
            token=lambda: secrets.token_urlsafe(16),
            server_properties={
                "product": amqp.product,
                "version": amqp.product_version,
                "broker": "gateway",
                "broker_version": VERSION,
                "platform": "Python",
                "cluster_name": self.settings.node,
                "information": "https://www.rabbitmq.com/amqp-0-9-1-reference.html",
            },
            mechanisms=mechanisms,
            heartbeat_s=amqp.heartbeat_s,
            frame_max=amqp.frame_max,
            channel_max=amqp.channel_max,
            max_message_size=amqp.max_message_size,
            max_held_size=amqp.max_held_size,
            max_unsettled_size=amqp.max_unsettled_size,
            login_timeout_s=amqp.login_timeout_s,
            consumer_timeout_ms=self.settings.queues.consumer_timeout_ms,
        )

    # Clockwork

    def _tick_all(self) -> None:
        for peer in self.broker.connections:
            try:
                peer.tick()
            except Exception:  # isolate connections: close the failing one and log the error
                peer.fail()

    def _check_memory(self) -> None:
        """Collect garbage that is due, and compare memory and disk with their limits."""
        self.collector.tick()
        self._watermarks.tick()

    def _contain_faults(self, call: Callable[[], None]) -> None:
        """Wrap a periodic call: an exception does not prevent the next calls."""
        try:
            call()
        except Exception as error:  # a stopped clock would freeze alarms, timeouts and statistics
            self.broker.faults.contain("clockwork", error)

    def _contain_step_faults(self, steps: Iterator[None]) -> Iterator[None]:
        """Run the steps of long periodic work; an exception ends only this run."""
        try:
            yield from steps
        except Exception as error:  # as above
            self.broker.faults.contain("clockwork", error)

    def _ending_turns(self, steps: Iterator[None]) -> Iterator[None]:
        """End each slice of long work in a turn."""
        for step in steps:
            self._turn.touch()
            yield step

    def _login_counts(self) -> Mapping[str, int]:
        throttle, hashing = self.throttle, self._hashing
        return {
            "delayed": throttle.delayed,
            "refused": throttle.refused,
            "waiting": throttle.waiting,
            "hashes_unfinished": hashing.unfinished,
            "hashes_refused": hashing.refused,
        }

    def _call_in_kernel(self, call: Callable[[], None]) -> None:
        """Run a call on the kernel's thread, in a turn. Called from any thread."""

        def run() -> None:
            self._contain_faults(call)
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
        for loop in (
            self._watch,
            self._turn_reports,
            self._tick,
            self._sampling,
            self._sys_topics_loop,
            self._compacting,
        ):
            if loop.running:
                loop.stop()
        self._turn.end()
        self.broker.stop()
        self._close(done)

    def _close(self, done: Callable[[], None]) -> None:
        self._worker.stop()
        self._hashing.stop()
        self._store.close()
        done()


def _log_slow_turn(seconds: float, cause: str) -> None:
    _log.warning("a turn of the event loop took long", ms=round(seconds * 1e3), cause=cause or "not known")


class _DelayedCalls(Schedule):
    """Ends turns with delayed calls, on a reactor without turns of its own."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    def end_soon(self, turn: Turn) -> None:
        """End the turn in a delayed call."""
        self._reactor.callLater(0, turn.end)

    def go_on_soon(self, turn: Turn) -> None:
        """Continue the remaining work of a turn in a delayed call."""
        self._reactor.callLater(0, turn.go_on)
