"""A node of a cluster, as ``gateway run`` runs it: it forwards its clients to the leader, or leads."""

import secrets
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.errors import Deposed, Unanswered
from gateway.cluster.leadership import Contact, Leadership, Member, Members
from gateway.cluster.queue_log import Claim
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.config import Configured, Settings
from gateway.config.live import LIVE, differences
from gateway.kernel.errors import GatewayError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.management.cluster_state import ClusterState, RebuildState
from gateway.net.clock import ReactorClock
from gateway.node.cluster.engine import Engine, advertised_host, open_engine
from gateway.node.cluster.forwarding_secret import forwarding_secret
from gateway.node.cluster.lease_watch import LeaseWatch
from gateway.node.cluster.local_copy import LocalCopy, next_turn
from gateway.node.cluster.member_control import MemberControl
from gateway.node.cluster.member_ports import MemberPorts
from gateway.node.cluster.operators_view import cluster_state, member_figures
from gateway.node.control.live_settings import ReloadResult
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.node import Node
from gateway.node.store import StoreFiles
from gateway.node.systemd import tell_systemd
from gateway.version import VERSION

_log: Final = StructuredLog("cluster")

#: How long a node that stops waits for the engine to write the rest, in seconds.
_DRAIN_S: Final = 5.0

#: The pause after an attempt to lead that failed, in seconds.
_PAUSE_S: Final = 5.0


class ClusterMember:
    """One node of a cluster on one reactor. Owns its connection to the engine, its ports, and its node while it leads.

    ``on_failure``, ``on_start_failed`` and ``on_stop`` are those of ``Node``; ``on_node`` is called with each node that
    begins to lead. ``read`` reads the configuration again.
    """

    def __init__(
        self,
        configured: Configured,
        reactor: Any,  # Any: Twisted's interfaces are not types
        collector: GarbageCollector,
        read: Callable[[], Configured],
        host: NodeHost,
        on_node: Callable[[Node], None] = lambda node: None,
    ) -> None:
        self.on_failure: Callable[[], None] = lambda: None
        self.on_start_failed: Callable[[Exception], None] = lambda error: None
        self.on_stop: Callable[[], None] = lambda: None
        self._on_node = on_node
        self.node: Node | None = None
        self._configured = configured
        self._reactor = reactor
        self._collector = collector
        self._read = read
        self._host = host
        self._clock = ReactorClock(reactor, lambda: None)  # never paused: the lease is renewed during a recovery
        self._ready: Callable[[], None] = lambda: None
        self._progress: Callable[[str], None] = lambda text: None
        self._ports = MemberPorts(
            self.settings,
            reactor,
            self._clock,
            self._forwarding_target,
            self._leading_epoch,
            self._leader_fingerprint,
            self._fault,
        )
        self._engine: Engine | None = None
        self._members: Members | None = None
        self._leadership: Leadership | None = None
        self._copy: LocalCopy | None = None
        self._store: ReplicatedStore | None = None
        self._control: MemberControl | None = None
        self._contact = Contact(self)
        self._rebuild = RebuildState()
        self._started_s = reactor.seconds()
        self._secret = ""
        self._is_stopping = False
        self._is_stepping_down = False
        self._is_building = False

    @property
    def settings(self) -> Settings:
        """The settings of the start, or those that the leading node has read since."""
        return self._configured.settings if self.node is None else self.node.settings

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses of the listeners: listener name to (host, port)."""
        return self._ports.addresses

    # Start

    def start(self, ready: Callable[[], None], progress: Callable[[str], None] = lambda text: None) -> None:
        """Bind the ports, connect to the engine and join; then call ``ready``.

        ``on_start_failed`` is called with the error if the engine is not fit or cannot be reached.
        """
        self._ready, self._progress = ready, progress
        Deferred.fromCoroutine(self._starting())

    async def _starting(self) -> None:
        try:
            await self._join()
        except Exception as error:  # any error must stop the process, which has nothing to serve
            self.on_start_failed(error)

    async def _join(self) -> None:
        self._ports.bind()
        settings = self.settings
        self._engine = engine = await open_engine(settings.cluster, settings.node, self._reactor, self.on_start_failed)
        self._secret = await forwarding_secret(engine.metadata)
        self._ports.serve_forwarding(self._secret, self._is_drained)
        own = Member(
            settings.node,
            secrets.token_hex(8),
            (advertised_host(settings.cluster), self._ports.internal_port),
            dict(self.addresses),
            VERSION,
            fingerprint=self._ports.tls.fingerprint,
        )
        data, keeps_standby = settings.data, settings.cluster.standby
        self._copy = copy = LocalCopy(data, self._reactor, self._clock, engine.logs, keeps_standby)
        self._members = members = Members(
            engine.metadata,
            self._clock,
            Deferred.fromCoroutine,
            own,
            self._contact,
            self.on_start_failed,
            lambda: {**member_figures(self.settings, self._uptime_ms), **copy.figures(), **self._ports.figures()},
        )
        self._leadership = leadership = Leadership(
            engine.metadata, engine.logs, self._clock, Deferred.fromCoroutine, members, self._contact, self
        )
        self._control = MemberControl(
            engine.metadata, self._clock, members, leadership, self._ports, self.hand_over, lambda: self.node
        )
        members.join()
        leadership.start()
        self._control.start()
        self._ports.follow()
        copy.follow()
        _log.info("joined", cluster=settings.cluster.name, node=settings.node)
        self._ready()

    # Reports of the contact and of the election

    def on_unreachable(self, reason: str) -> None:
        """Log that the engine does not answer."""
        _log.warning("the engine does not answer", reason=reason)
        tell_systemd(f"STATUS={self._fault()}")

    def on_reachable(self) -> None:
        """Log that the engine answers again."""
        _log.info("the engine answers")
        tell_systemd("STATUS=")

    def on_elected(self, claim: Claim) -> None:
        """Lead: build the copy from the log, and start a node on it."""
        _log.info("elected", epoch=claim.epoch)
        if self._is_building or self.node is not None:
            self._could_not_lead(claim, Unanswered("the end of an earlier leadership takes long"))
            return
        Deferred.fromCoroutine(self._leading(claim))

    def on_lost(self, reason: str) -> None:
        """Follow again: another node leads, or may lead soon."""
        _log.warning("no longer the leader", reason=reason)
        self._step_down(reason)

    def _lease_left_s(self, claim: Claim) -> float:
        leadership = self._leadership
        return 0.0 if leadership is None or leadership.claim != claim else leadership.lease_left_s

    def _leads(self, claim: Claim) -> bool:
        leadership = self._leadership
        return leadership is not None and leadership.check() and leadership.claim == claim and not self._is_stopping

    async def _leading(self, claim: Claim) -> None:
        self._is_building = True
        try:
            await self._lead(claim)
        except Exception as error:  # whatever it is, another node may do better
            self._could_not_lead(claim, error)
        finally:
            self._is_building = False
            if self.node is None:
                self._keep_copy()

    def _keep_copy(self) -> None:
        """Begin a copy that grows while this node follows: the former one may have steps that the log refused."""
        if self._copy is not None and not self._is_stopping:
            self._copy.follow()

    async def _lead(self, claim: Claim) -> None:
        assert self._engine is not None
        assert self._copy is not None
        began_s = self._reactor.seconds()

        def check() -> None:
            if not self._leads(claim):  # the rest would only slow down the next leader
                raise Deposed("the leadership was lost while the copy was built")

        files = StoreFiles(self.settings.storage.compact_at)
        built = await self._copy.build(claim, check, files.log_progress)
        copy, rebuilt = built.store, built.rebuilt
        await next_turn(self._reactor)
        if not self._leads(claim):
            copy.close()
            return
        logs = self._engine.logs
        self._store = store = ReplicatedStore(copy, logs, self._clock, claim, rebuilt.end, rebuilt.growth)
        LeaseWatch(self._clock, lambda: self._lease_left_s(claim), store).start()
        took_s = round(self._reactor.seconds() - began_s, 3)
        self._rebuild = RebuildState(took_s, rebuilt.records, rebuilt.bytes)
        _log.info("copy built", records=rebuilt.records, bytes=rebuilt.bytes, seconds=took_s)

        def open_store(settings: Settings, reactor: Any, own_files: StoreFiles) -> ReplicatedStore:
            own_files.store = copy
            return store

        host = replace(
            self._host,
            open_store=open_store,
            drain_store=self._drain,
            listeners=self._ports.handed_over(),
            cluster=self.state,
            cluster_control=self._control,
        )
        self.node = node = Node(self._newest(), self._reactor, self._collector, self._read, host)
        node.on_failure = lambda: self._step_down("the store failed")
        node.on_stop = self.on_stop
        node.on_start_failed = lambda error: self._could_not_lead(claim, error)
        self._on_node(node)
        node.start(lambda: self._leads_now(claim), self._progress)

    def _leads_now(self, claim: Claim) -> None:
        self._ports.lead()
        _log.info("leading", epoch=claim.epoch)

    def _newest(self) -> Configured:
        """Return the configuration as it is now; that of the start if it cannot be read."""
        try:
            self._configured = self._read()
        except GatewayError as error:
            _log.warning("the configuration cannot be read, that of the start is used", reason=str(error))
        return self._configured

    def _could_not_lead(self, claim: Claim, error: BaseException) -> None:
        """Leave the place to another node, and try again later."""
        if isinstance(error, Deposed | Unanswered):
            _log.warning("could not lead", reason=str(error))
        elif isinstance(error, GatewayError):
            _log.error("could not lead", reason=str(error))
        else:
            details = "".join(traceback.format_exception(error))
            _log.error("could not lead", reason=f"{type(error).__name__}: {error}", traceback=details)
        if self._leadership is not None and self._leadership.claim == claim:
            self._leadership.resign()
            self._stand_later()
        self._step_down(str(error))

    # The end of leading

    def _step_down(self, reason: str) -> None:
        """Close the connections of clients, and follow."""
        node, store = self.node, self._store
        if self._is_stepping_down or self._is_stopping:
            return
        self._is_stepping_down = node is not None  # a store that fails reports it, which asks for the same
        if store is not None:
            store.fail(reason)
        if node is None:
            self._store = None
            if store is not None:  # no node was built on it that would close it
                store.close()
            return
        leadership = self._leadership
        if leadership is not None and leadership.claim is not None:  # its disk failed: another node may do better
            leadership.resign()
        node.stop(self._stepped_down)

    def hand_over(self, successor: str = "") -> None:
        """Stop leading in order, and follow: the ``successor`` leads next, if it is alive, else any willing node."""
        leadership = self._leadership
        if leadership is None or self._is_stopping or self._is_stepping_down:
            return
        resign = partial(leadership.resign, successor=successor)
        if self.node is None:
            resign()
            self._stand_later()
            return
        self._is_stepping_down = True
        self.node.stop(lambda: self._handed_over(resign))

    def _handed_over(self, resign: Callable[[], None]) -> None:
        resign()
        self._stand_later()
        self._stepped_down()

    def _stand_later(self) -> None:
        if self._control is not None:
            self._reactor.callLater(_PAUSE_S, self._control.stand)

    def _stepped_down(self) -> None:
        self._renew()
        self.node = self._store = None
        self._is_stepping_down = False
        self._ports.bind_again(self._ports.follow)
        self._keep_copy()

    def _renew(self) -> None:
        """Use the certificates and settings that the node has read while it led."""
        try:
            self._ports.renewed(self.settings)()
        except GatewayError as error:
            _log.warning("the certificate cannot be read, the former one is used", reason=str(error))

    def _drain(self, drained: Callable[[], None]) -> None:
        """Call back once everything is in the log, or after a while."""
        store = self._store
        if store is None:
            drained()
            return
        once = _Once(drained)
        self._reactor.callLater(_DRAIN_S, once)
        store.drain(once)

    # Stop

    def stop(self, done: Callable[[], None]) -> None:
        """Stop in order: hand the leadership over, leave, then call ``done``."""
        self._is_stopping = True
        if self.node is not None:
            self.node.stop(lambda: self._resign(done))
        else:
            self._resign(done)

    def _resign(self, done: Callable[[], None]) -> None:
        self._ports.close()
        once = _Once(lambda: self._closed(done))
        self._reactor.callLater(_DRAIN_S, once)
        leadership, members = self._leadership, self._members
        if leadership is None or members is None:
            once()
            return
        leadership.resign(lambda: members.leave(once))

    def _closed(self, done: Callable[[], None]) -> None:
        for part in (self._control, self._leadership, self._members, self._copy, self._engine):
            if part is not None:
                part.close()
        done()

    # For operators

    def reload(self) -> ReloadResult:
        """Read the configuration and the certificates again, as a leader or as a follower.

        :raises GatewayError: if the settings, a certificate or the log file is invalid; then nothing has changed.
        """
        if self.node is not None:
            return self.node.reload()
        configured = self._read()
        before, new = self._configured.settings, configured.settings
        renew = self._ports.renewed(new)
        start_logging(new.log)
        renew()
        self._configured = configured
        differ = differences(before, new)
        read = len(new.tls.certificates) if before.tls.certificate is not None else 0
        return ReloadResult([k for k in differ if k in LIVE], [k for k in differ if k not in LIVE], [], read)

    def state(self) -> ClusterState | None:
        """Return the state of the cluster as this node sees it; ``None`` before it has joined."""
        leadership, members = self._leadership, self._members
        if leadership is None or members is None or self._control is None:
            return None
        name, fault = self.settings.cluster.name, self._contact.reason
        is_drained = self._control.is_drained
        state = cluster_state(name, leadership, members, is_drained, fault, self._store, self._rebuild)
        return replace(state, unchecked_servers=() if self._engine is None else tuple(self._engine.unchecked()))

    def _is_drained(self, name: str) -> bool:
        return self._control is not None and self._control.is_drained_name(name)

    def _uptime_ms(self) -> int:
        return int(1000 * (self._reactor.seconds() - self._started_s))

    def info(self) -> dict[str, object]:
        """Return the state for a dump of the process."""
        leadership = self._leadership
        role = "starting" if leadership is None else leadership.role.value
        return {"role": role, **({} if self.node is None else self.node.info())}

    def _forwarding_target(self) -> tuple[str, int] | None:
        """Return the address at which the leader takes forwarded connections."""
        lease = None if self._leadership is None else self._leadership.leader
        return None if lease is None else lease.forwarding

    def _fault(self) -> str:
        """Return why this node cannot know of a leader, in one line; empty if it could."""
        reason = self._contact.reason
        return f"this node has no majority of the cluster: {reason}" if reason else ""

    def _leader_fingerprint(self) -> str:
        """Return the fingerprint of the leader's certificate for connections of other nodes."""
        lease = None if self._leadership is None else self._leadership.leader
        return "" if lease is None else lease.fingerprint

    def _leading_epoch(self) -> int:
        """Return the epoch of the leader."""
        lease = None if self._leadership is None else self._leadership.leader
        return 0 if lease is None else lease.epoch


class _Once:
    """Makes a call once, however often it is called."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def __call__(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()
