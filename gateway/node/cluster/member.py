"""A node of a cluster, as ``gateway run`` runs it: it forwards its clients to the leaders of cells, or leads some."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.cells import cell_count
from gateway.cluster.leadership import LEADER_LOG, Contact, Member, Members, Standing
from gateway.cluster.metadata import Key
from gateway.cluster.queue_log import Claim, QueueId
from gateway.config import Configured, Settings
from gateway.logs import StructuredLog
from gateway.management.cells.cell_answer import NO_FLOW, CellAnswer, CellFlow, CellQuestion
from gateway.management.cluster_state import CellState, ClusterState
from gateway.net.clock import ReactorClock
from gateway.net.forwarding.routing import Leader
from gateway.node.cluster.cell_map import CellMap
from gateway.node.cluster.cell_request import CellRequest
from gateway.node.cluster.cell_seat import CellSeat
from gateway.node.cluster.configuration import MemberConfiguration
from gateway.node.cluster.copy_answers import CopyAnswers
from gateway.node.cluster.engine import Engine, advertised_host, open_engine
from gateway.node.cluster.forwarding_secret import forwarding_secret
from gateway.node.cluster.member_cell import DRAIN_S, CellHome, MemberCell
from gateway.node.cluster.member_control import MemberControl
from gateway.node.cluster.member_ports import MemberPorts
from gateway.node.cluster.one_call import OneCall
from gateway.node.cluster.operators_view import cluster_state, member_figures
from gateway.node.cluster.process_mark import has_ended, own_mark
from gateway.node.control.live_settings import ReloadResult
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.node import Node
from gateway.node.systemd import tell_systemd
from gateway.version import VERSION

_log: Final = StructuredLog("cluster")


class ClusterMember:
    """One node of a cluster on one reactor. Owns its connection to the engine, its ports, and its cells.

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
        self._configuration = MemberConfiguration(configured, read)
        self._reactor = reactor
        self._collector = collector
        self._host = host
        self._clock = ReactorClock(reactor, lambda: None)  # never paused: leases are renewed during a recovery
        self._ready: Callable[[], None] = lambda: None
        self._progress: Callable[[str], None] = lambda text: None
        self._cells: list[MemberCell] = []
        self._ports = MemberPorts(self.settings, reactor, self._clock, self._leader_of, self._fault)
        self._answers = CopyAnswers(self.settings, reactor, self._clock, lambda: [cell.copy for cell in self._cells])
        self._ports.answering = self._answers
        self._engine: Engine | None = None
        self._members: Members | None = None
        self._map: CellMap | None = None
        self._control: MemberControl | None = None
        self._contact = Contact(self)
        self._started_s = reactor.seconds()
        self._secret = ""

    @property
    def node(self) -> Node | None:
        """The node that leads the first cell, or another one; ``None`` while this member leads no cell."""
        return next(self._nodes(), None)

    def _nodes(self) -> Iterator[Node]:
        return (cell.node for cell in self._cells if cell.node is not None)

    @property
    def settings(self) -> Settings:
        """The settings of the start, or those that were read since."""
        first = self._first
        return self._configuration.settings if first is None or first.node is None else first.node.settings

    @property
    def _first(self) -> MemberCell | None:
        return self._cells[0] if self._cells else None

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
            process=own_mark(),
        )
        self._members = members = Members(
            engine.metadata,
            self._clock,
            Deferred.fromCoroutine,
            own,
            self._contact,
            self.on_start_failed,
            lambda: {
                **member_figures(self.settings, self._uptime_ms),
                **furthest_behind(cell.copy.figures() for cell in self._cells),
                **self._ports.figures(),
                **self._answers.figures(),
            },
            has_ended,
        )
        count = await cell_count(engine.metadata, settings.cluster.cells)
        if count > 1:
            self._map = await self._opened_map(engine, members, count)
        home = self._home(engine, members)
        self._cells = [MemberCell(QueueId(number), home) for number in range(LEADER_LOG, LEADER_LOG + count)]
        self._control = MemberControl(engine.metadata, self._clock, members, self._cells, self._ports)
        members.join()
        for cell in self._cells:
            cell.start()
        self._control.start()
        self._ports.follow()
        for cell in self._cells:
            cell.follow()
        _log.info("joined", cluster=settings.cluster.name, node=settings.node)
        self._ready()

    async def _opened_map(self, engine: Engine, members: Members, count: int) -> CellMap:
        """Return the map of several cells; from now on all clients are passed on."""
        own = self.settings.node

        def others() -> list[str]:
            return [member.name for member in members.alive if member.name != own]

        found = CellMap(engine.metadata, engine.bus, self._clock, own, count, others)
        found.on_vhost, found.on_shared = self._vhost_changed, self._shared_changed
        await found.open()
        self._ports.share(found)
        return found

    def _home(self, engine: Engine, members: Members) -> CellHome:
        return CellHome(
            reactor=self._reactor,
            clock=self._clock,
            collector=self._collector,
            configuration=self._configuration,
            ports=self._ports,
            engine=engine,
            members=members,
            contact=self._contact,
            standing=Standing(members),
            host=self._host_of,
            seat=self._seat_of,
            on_node=self._on_node,
            on_stop=lambda: self.on_stop(),
            progress=lambda text: self._progress(text),
            may_stand=lambda: self._control is not None and not self._control.is_this_drained,
        )

    def _host_of(self, cell: MemberCell) -> NodeHost:
        return replace(self._host, cluster=partial(self._state_of, cell), cluster_control=self._control)

    def _seat_of(self, cell: MemberCell, claim: Claim) -> CellSeat | None:
        return None if self._map is None else CellSeat(cell.log, claim.epoch, self._map, self._clock, self._ask)

    def _ask(self, cell: int, question: CellQuestion, answer: CellAnswer) -> CellFlow:
        """Ask the leader of a cell."""
        leader = self._leader_of(cell)
        if leader is None:
            self._reactor.callLater(0, answer.failed, "it has no leader now")
            return NO_FLOW
        own, tls = self.settings.node, self._ports.tls.client
        return CellRequest(leader, self._secret, own, tls, self._reactor, self._clock, question, answer)

    # Reports of the map

    def _vhost_changed(self, name: str) -> None:
        for cell in self._cells:
            if cell.seat is not None:
                cell.seat.vhost_changed(name)

    def _shared_changed(self, key: Key) -> None:
        for cell in self._cells:
            if cell.seat is not None:
                cell.seat.shared_changed(key)

    # Reports of the contact

    def on_unreachable(self, reason: str) -> None:
        """Log that the engine does not answer."""
        _log.warning("the engine does not answer", reason=reason)
        tell_systemd(f"STATUS={self._fault()}")

    def on_reachable(self) -> None:
        """Log that the engine answers again."""
        _log.info("the engine answers")
        tell_systemd("STATUS=")

    def _fault(self) -> str:
        """Return why this node cannot know of a leader, in one line; empty if it could."""
        reason = self._contact.reason
        return f"this node has no majority of the cluster: {reason}" if reason else ""

    # Stop

    def stop(self, done: Callable[[], None]) -> None:
        """Stop in order: hand the leaderships over, leave, then call ``done``."""
        after_all(self._cells, lambda cell, ended: cell.stop(ended), lambda: self._resign(done))

    def _resign(self, done: Callable[[], None]) -> None:
        self._ports.close()
        once = OneCall(lambda: self._closed(done))
        self._reactor.callLater(DRAIN_S, once)
        members = self._members
        if not self._cells or members is None:
            once()
            return
        after_all(self._cells, lambda cell, ended: cell.leadership.resign(ended), lambda: members.leave(once))

    def _closed(self, done: Callable[[], None]) -> None:
        for part in (self._control, *self._cells, self._map, self._members, self._engine, self._answers):
            if part is not None:
                part.close()
        done()

    # For operators

    def reload(self) -> ReloadResult:
        """Read the configuration and the certificates again, as a leader or as a follower.

        :raises GatewayError: if the settings, a certificate or the log file is invalid; then nothing has changed.
        """
        nodes = list(self._nodes())
        if not nodes:
            return self._configuration.reload(self._ports.renewed)
        result, *_ = [node.reload() for node in nodes]
        if self._ports.passes_own_on:  # their listeners stay with this member
            self._ports.renewed(nodes[0].settings)()
        return result

    def _state_of(self, cell: MemberCell) -> ClusterState | None:
        """Return the state of the cluster as the node of a cell sees it; ``None`` before this member has joined."""
        members = self._members
        if members is None or self._control is None:
            return None
        name, fault = self.settings.cluster.name, self._contact.reason
        is_drained = self._control.is_drained
        state = cluster_state(name, cell.leadership, members, is_drained, fault, cell.store, cell.rebuild)
        unchecked = () if self._engine is None else tuple(self._engine.unchecked())
        return replace(state, unchecked_servers=unchecked, cells=self._cell_states())

    def _cell_states(self) -> tuple[CellState, ...]:
        """Return the state of each cell; nothing if there is only one."""
        if self._map is None:
            return ()
        found = self._map.vhosts
        return tuple(
            CellState(
                int(cell.log),
                "" if cell.leader is None else cell.leader.leader,
                cell.leadership.epoch,
                len(found.names_in(cell.log)),
            )
            for cell in self._cells
        )

    def _is_drained(self, name: str) -> bool:
        return self._control is not None and self._control.is_drained_name(name)

    def _uptime_ms(self) -> int:
        return int(1000 * (self._reactor.seconds() - self._started_s))

    def info(self) -> dict[str, object]:
        """Return the state for a dump of the process."""
        first, node = self._first, self.node
        role = "starting" if first is None else first.leadership.role.value
        return {"role": role, **({} if node is None else node.info())}

    def _leader_of(self, cell: int) -> Leader | None:
        """Return the leader of a cell, and where it takes forwarded connections."""
        if not 0 < cell <= len(self._cells):
            return None
        lease = self._cells[cell - 1].leader
        return None if lease is None else Leader(lease.forwarding, lease.epoch, lease.fingerprint, cell)


def furthest_behind(figures: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Return the figures of the copy that is furthest behind; empty if one of them is not known."""
    found = list(figures)
    if not found or not all(found):
        return {}
    return {name: max(each[name] for each in found) for name in found[0]}


def after_all(
    cells: Sequence[MemberCell], begin: Callable[[MemberCell, Callable[[], None]], None], done: Callable[[], None]
) -> None:
    """Begin something with each cell; call ``done`` when all of it has ended."""
    open_cells = set(range(len(cells)))

    def ended(number: int) -> None:
        if number in open_cells:
            open_cells.discard(number)
            if not open_cells:
                done()

    if not cells:
        done()
    for number, cell in enumerate(cells):
        begin(cell, partial(ended, number))
