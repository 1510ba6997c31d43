"""The control of a cluster by operators: maintenance, the leadership, members that will not come back."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from gateway.cluster.cells import Handover, HandoverRecords, moves
from gateway.cluster.errors import Outdated
from gateway.cluster.leadership import LEADER_LOG, MaintenanceRecords, Member, Members
from gateway.cluster.metadata import Metadata
from gateway.kernel.clock import Clock
from gateway.kernel.errors import NotFound, PreconditionFailed
from gateway.logs import StructuredLog
from gateway.net.listeners import plain_host
from gateway.node.cluster.member_cell import MemberCell
from gateway.node.cluster.member_ports import MemberPorts
from gateway.node.control.maintenance import REASON
from gateway.node.node import Node

_log: Final = StructuredLog("cluster")

#: The time between an answer to an operator and the end of the connection on which it is sent, in seconds.
_ANSWER_S: Final = 0.2


class MemberControl:
    """Carries out what operators ask for; the leader gets their requests, and the records of the cluster pass them on.

    ``cells`` are those of this node.
    """

    def __init__(
        self,
        metadata: Metadata,
        clock: Clock,
        members: Members,
        cells: Sequence[MemberCell],
        ports: MemberPorts,
    ) -> None:
        self._records = MaintenanceRecords(metadata, self._changed)
        self._handovers = HandoverRecords(metadata, self._asked)
        self._clock = clock
        self._members = members
        self._cells = cells
        self._ports = ports
        self.is_this_drained = False

    def start(self) -> None:
        """Begin to watch the records."""
        self._records.start()
        if len(self._cells) > 1:
            self._handovers.start()

    def close(self) -> None:
        """Stop: make no more calls."""
        self._records.close()
        self._handovers.close()

    def is_drained(self, member: Member) -> bool:
        """Whether a node is in maintenance."""
        return self._records.holds_for(member)

    def is_drained_name(self, name: str) -> bool:
        """Whether the live node of this name is in maintenance."""
        return any(member.name == name and self.is_drained(member) for member in self._members.alive)

    # What operators ask for

    async def drain(self, name: str) -> None:
        """Put a node into maintenance.

        :raises NotFound: if the cluster has no such node.
        :raises PreconditionFailed: if it is not alive, or no other node could lead.
        """
        member = self._alive(name)
        if name == self._members.own.name:
            self._require_successor()
        await self._records.write(member)

    async def revive(self, name: str) -> None:
        """Put a node into service again. :raises NotFound: if the cluster has no such node."""
        self._known(name)
        await self._records.delete(name)

    async def transfer(self, name: str, cell: int = LEADER_LOG) -> None:
        """Let another node lead a cell. :raises NotFound: :raises PreconditionFailed: if none can."""
        if not LEADER_LOG <= cell <= len(self._cells):
            raise NotFound(f"the cluster has no cell {cell}")
        if name and name == self._leader_of(cell):
            return
        if name:
            member = self._alive(name)
            if not self._is_willing(member):
                raise PreconditionFailed(f"node {name} does not stand for election now; revive it first")
        else:
            self._require_successor()
        _log.info("the leadership is handed over", to=name or "any node")
        await self._hand_over(cell, name)

    async def rebalance(self) -> None:
        """Spread the leaders of the cells over the nodes that may lead."""
        leaders = {int(cell.log): cell.leader.leader for cell in self._cells if cell.leader is not None}
        willing = [member.name for member in self._members.alive if self._is_willing(member)]
        for cell, name in moves(leaders, willing).items():
            _log.info("the leadership of a cell is handed over", cell=cell, to=name)
            await self._hand_over(cell, name)

    def _leader_of(self, cell: int) -> str:
        lease = self._cells[cell - LEADER_LOG].leader
        return "" if lease is None else lease.leader

    async def _hand_over(self, cell: int, name: str) -> None:
        """Let the leader of a cell hand over, which may be on another node."""
        local = self._cells[cell - LEADER_LOG]
        if local.node is not None:
            self._clock.call_later(_ANSWER_S, lambda: local.hand_over(name))
        elif local.leader is None:
            raise PreconditionFailed(f"cell {cell} has no leader now")
        else:
            await self._handovers.ask(cell, Handover(local.leader.epoch, name))

    def _asked(self, cell: int, handover: Handover) -> None:
        """Hand over a cell that this node leads in the epoch of a request."""
        if not LEADER_LOG <= cell <= len(self._cells):
            return
        local = self._cells[cell - LEADER_LOG]
        claim = local.leadership.claim
        if claim is not None and claim.epoch == handover.epoch:
            _log.info("the leadership of a cell is handed over", cell=cell, to=handover.successor or "any node")
            local.hand_over(handover.successor)

    async def forget(self, name: str) -> None:
        """Delete the record of a node. :raises NotFound: :raises PreconditionFailed: if it is alive."""
        self._known(name)
        if any(member.name == name for member in self._members.alive):
            raise PreconditionFailed(f"node {name} is alive; stop it first")
        try:
            await self._members.forget(name)
        except Outdated:
            raise PreconditionFailed(f"node {name} has just written its record; it is alive") from None
        await self._records.delete(name)
        _log.info("a node was forgotten", node=name)

    def _known(self, name: str) -> None:
        if not any(member.name == name for member in (*self._members.known, self._members.own)):
            raise NotFound(f"the cluster has no node {name}")

    def _alive(self, name: str) -> Member:
        for member in self._members.alive:
            if member.name == name:
                return member
        self._known(name)
        raise PreconditionFailed(f"node {name} is not running")

    def _is_willing(self, member: Member) -> bool:
        return member.is_eligible and not self.is_drained(member)

    def _require_successor(self) -> None:
        own = self._members.own.name
        if not any(member.name != own and self._is_willing(member) for member in self._members.alive):
            raise PreconditionFailed("no other node can lead: start one, or revive one that is drained")

    # What the records say

    def _changed(self, name: str) -> None:
        if name == self._members.own.name:
            self._apply(self._records.holds_for(self._members.own))
        elif self.is_drained_name(name):
            self._close_clients(name)

    def _close_clients(self, name: str) -> None:
        """Close the clients of a node in the cells that this one leads."""
        for cell in self._cells:
            if cell.node is not None:
                self._close_clients_of(name, cell.node)

    def _apply(self, is_drained: bool) -> None:
        """Begin or end the maintenance of this node."""
        if is_drained == self.is_this_drained:
            return
        self.is_this_drained = is_drained
        if is_drained:
            _log.info("drained")
            if self._ports.passes_own_on:  # they would go on with the next leaders
                self._close_clients(self._members.own.name)
            self._ports.drain()
            self._clock.call_later(_ANSWER_S, self._resign)
        else:
            _log.info("revived")
            self._ports.revive()
            for cell in self._cells:
                cell.leadership.stand()

    def _resign(self, handed_over: int = 0) -> None:
        """Hand over one cell after the other."""
        if self.is_this_drained and handed_over < len(self._cells):
            self._cells[handed_over].hand_over("", lambda: self._resign(handed_over + 1))

    def _close_clients_of(self, name: str, node: Node) -> None:
        """Tell the clients that another node forwards that it is drained, and close their connections."""
        addresses = {
            (plain_host(peer.host), peer.port, plain_host(host.host), host.port)
            for peer, host in self._ports.forwarded_by(name)
        }

        def is_forwarded(peer: Any) -> bool:  # Any: a peer of the kernel
            info = peer.info()
            return (info.peer_host, info.peer_port, info.host, info.port) in addresses

        self._clock.background.add(self._closing(node, is_forwarded))

    def _closing(self, node: Node, is_forwarded: Callable[[Any], bool]) -> Iterator[None]:  # Any: as above
        for _ in node.broker.connections.force_closes(REASON, is_forwarded):
            node.touch()
            yield
