"""One cell on one node: the node stands for the election of its leader, keeps a copy of its log, and leads it."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.errors import Deposed, Unanswered
from gateway.cluster.leadership import Contact, Leadership, Lease, Members, Standing
from gateway.cluster.queue_log import Claim, QueueId
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.kernel.errors import GatewayError
from gateway.logs import StructuredLog
from gateway.management.cluster_state import RebuildState
from gateway.management.pipeline.vouched_range import LogPlace
from gateway.node.cluster.cell_seat import CellSeat
from gateway.node.cluster.configuration import MemberConfiguration, of_cell
from gateway.node.cluster.engine import Engine
from gateway.node.cluster.lease_watch import LeaseWatch
from gateway.node.cluster.local_copy import LocalCopy, next_turn
from gateway.node.cluster.member_ports import MemberPorts
from gateway.node.cluster.one_call import OneCall
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.node import Node
from gateway.node.store import StoreFiles

_log: Final = StructuredLog("cluster")

#: How long a node that stops waits for the engine to write the rest, in seconds.
DRAIN_S: Final = 5.0

#: The pause after an attempt to lead that failed, in seconds.
_PAUSE_S: Final = 5.0


@dataclass(frozen=True)
class CellHome:
    """The surroundings of the cells of one member.

    ``host`` returns the machine of a cell's node, ``seat`` its seat among several cells, ``None`` in the only one.
    ``on_node`` is called with each node that begins to lead, ``on_stop`` when an operator stops it over HTTP,
    ``progress`` with lines of text during its start. ``may_stand`` tells whether this member may stand for election.
    """

    reactor: Any  # Any: Twisted's interfaces are not types
    clock: Clock
    collector: GarbageCollector
    configuration: MemberConfiguration
    ports: MemberPorts
    engine: Engine
    members: Members
    contact: Contact
    standing: Standing
    host: Callable[["MemberCell"], NodeHost]
    seat: Callable[["MemberCell", Claim], CellSeat | None]
    on_node: Callable[[Node], None]
    on_stop: Callable[[], None]
    progress: Callable[[str], None]
    may_stand: Callable[[], bool]


class MemberCell:
    """One cell on one node. Owns its part in the election, its copy of the log, and its node while it leads."""

    def __init__(self, log: QueueId, home: CellHome) -> None:
        self.log = log
        self.node: Node | None = None
        self.rebuild = RebuildState()
        self.store: ReplicatedStore | None = None
        self.seat: CellSeat | None = None
        self._home = home
        engine = home.engine
        settings = of_cell(home.configuration.configured, log).settings
        self.copy = LocalCopy(settings.data, home.reactor, home.clock, engine.logs, settings.cluster.standby, log)
        self.leadership = Leadership(
            engine.metadata,
            engine.logs,
            home.clock,
            Deferred.fromCoroutine,
            home.members,
            home.contact,
            self,
            log,
            home.standing,
        )
        self._is_stopping = False
        self._is_stepping_down = False
        self._is_building = False

    @property
    def leader(self) -> Lease | None:
        """The lease of the leader; ``None`` while there seems to be none."""
        return self.leadership.leader

    def start(self) -> None:
        """Stand for election, and keep a copy."""
        self.leadership.start()

    def follow(self) -> None:
        """Begin to keep a copy, if this node keeps one."""
        self.copy.follow()

    # Reports of the election

    def on_elected(self, claim: Claim) -> None:
        """Lead: build the copy from the log, and start a node on it."""
        _log.info("elected", epoch=claim.epoch, **self._named())
        if self._is_building or self.node is not None:
            self._could_not_lead(claim, Unanswered("the end of an earlier leadership takes long"))
            return
        Deferred.fromCoroutine(self._leading(claim))

    def on_lost(self, reason: str) -> None:
        """Follow again: another node leads, or may lead soon."""
        _log.warning("no longer the leader", reason=reason, **self._named())
        self.step_down(reason)

    def _named(self) -> dict[str, Any]:  # Any: as for a log line
        """Return the field of log lines that names this cell, if there is more than one."""
        return {"cell": int(self.log)} if self._home.ports.is_shared else {}

    def _lease_left_s(self, claim: Claim) -> float:
        return self.leadership.lease_left_s if self.leadership.claim == claim else 0.0

    def _leads(self, claim: Claim) -> bool:
        return self.leadership.check() and self.leadership.claim == claim and not self._is_stopping

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
        if not self._is_stopping:
            self.copy.follow()

    async def _lead(self, claim: Claim) -> None:
        home = self._home
        began_s = home.reactor.seconds()

        def check() -> None:
            if not self._leads(claim):  # the rest would only slow down the next leader
                raise Deposed("the leadership was lost while the copy was built")

        files = StoreFiles(home.configuration.settings.storage.compact_at)
        built = await self.copy.build(claim, check, files.log_progress)
        copy, rebuilt = built.store, built.rebuilt
        try:
            await home.engine.logs.draw_near(claim)
        except BaseException:
            copy.close()
            raise
        await next_turn(home.reactor)
        if not self._leads(claim):
            copy.close()
            return
        self.store = store = ReplicatedStore(copy, home.engine.logs, home.clock, claim, rebuilt.end, rebuilt.growth)
        LeaseWatch(home.clock, lambda: self._lease_left_s(claim), store).start()
        took_s = round(home.reactor.seconds() - began_s, 3)
        self.rebuild = RebuildState(took_s, rebuilt.records, rebuilt.bytes)
        _log.info("copy built", records=rebuilt.records, bytes=rebuilt.bytes, seconds=took_s, **self._named())

        def open_store(settings: Settings, reactor: Any, own_files: StoreFiles) -> ReplicatedStore:
            own_files.store = copy
            return store

        self.seat = home.seat(self, claim)
        host = replace(
            home.host(self),
            place=self.seat,
            log_place=LogPlace(int(self.log), int(claim.epoch)),
            open_store=open_store,
            drain_store=self._drain,
            listeners=home.ports.handed_over(self.log),
        )
        newest = of_cell(home.configuration.newest(), self.log)
        read = home.configuration.reader_of(self.log)
        self.node = node = Node(newest, home.reactor, home.collector, read, host)
        node.on_failure = lambda: self.step_down("the store failed")
        node.on_stop = home.on_stop
        node.on_start_failed = lambda error: self._could_not_lead(claim, error)
        home.on_node(node)
        node.start(lambda: self._leads_now(claim), home.progress)

    def _leads_now(self, claim: Claim) -> None:
        self._home.ports.lead(self.log)
        if self.store is not None:
            self.store.announce()
        _log.info("leading", epoch=claim.epoch, **self._named())

    def _could_not_lead(self, claim: Claim, error: BaseException) -> None:
        """Leave the place to another node, and try again later."""
        if isinstance(error, Deposed | Unanswered):
            _log.warning("could not lead", reason=str(error), **self._named())
        elif isinstance(error, GatewayError):
            _log.error("could not lead", reason=str(error), **self._named())
        else:
            details = "".join(traceback.format_exception(error))
            _log.error("could not lead", reason=f"{type(error).__name__}: {error}", traceback=details, **self._named())
        if self.leadership.claim == claim:
            self.leadership.resign()
            self._stand_later()
        self.step_down(str(error))

    # The end of leading

    def step_down(self, reason: str) -> None:
        """Close the connections of clients, and follow."""
        node, store = self.node, self.store
        if self._is_stepping_down or self._is_stopping:
            return
        self._leave_seat()
        self._is_stepping_down = node is not None  # a store that fails reports it, which asks for the same
        if store is not None:
            store.fail(reason)
        if node is None:
            self.store = None
            if store is not None:  # no node was built on it that would close it
                store.close()
            return
        if self.leadership.claim is not None:  # its disk failed: another node may do better
            self.leadership.resign()
        node.stop(self._stepped_down)

    def hand_over(self, successor: str = "", handed_over: Callable[[], None] = lambda: None) -> None:
        """Stop leading in order, and follow: the ``successor`` leads next, if it is alive, else any willing node.

        ``handed_over`` is called when another node may lead.
        """
        if self._is_stopping or self._is_stepping_down:
            handed_over()
            return
        resign = partial(self.leadership.resign, successor=successor)
        if self.node is None:
            resign()
            self._stand_later()
            handed_over()
            return
        self._is_stepping_down = True
        self._leave_seat()
        self.node.stop(lambda: self._handed_over(resign, handed_over))

    def _handed_over(self, resign: Callable[[], None], handed_over: Callable[[], None]) -> None:
        resign()
        self._stand_later()
        self._stepped_down()
        handed_over()

    def stand(self) -> None:
        """Stand for election again, if this node may."""
        if self._home.may_stand():
            self.leadership.stand()

    def _stand_later(self) -> None:
        self._home.reactor.callLater(_PAUSE_S, self.stand)

    def _leave_seat(self) -> None:
        """Neither write nor apply records of other cells any more."""
        seat, self.seat = self.seat, None
        if seat is not None:
            seat.close()

    def _stepped_down(self) -> None:
        self._renew()
        self.node = self.store = None
        self._is_stepping_down = False
        self._home.ports.taken_back(self.log)
        self._keep_copy()

    def _renew(self) -> None:
        """Use the certificates and settings that the node has read while it led."""
        assert self.node is not None
        try:
            self._home.ports.renewed(self.node.settings)()
        except GatewayError as error:
            _log.warning("the certificate cannot be read, the former one is used", reason=str(error))

    def _drain(self, drained: Callable[[], None]) -> None:
        """Call back once everything is in the log, or after a while."""
        store = self.store
        if store is None:
            drained()
            return
        once = OneCall(drained)
        self._home.reactor.callLater(DRAIN_S, once)
        store.drain(once)

    # Stop

    def stop(self, done: Callable[[], None]) -> None:
        """Stop the node in order, and do not lead any more; then call ``done``. The lease is not given back yet."""
        self._is_stopping = True
        self._leave_seat()
        if self.node is not None:
            self.node.stop(done)
        else:
            done()

    def close(self) -> None:
        """Stop: make no more calls."""
        self.leadership.close()
        self.copy.close()
