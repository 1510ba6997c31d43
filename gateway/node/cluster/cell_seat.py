"""The seat of a node in a cluster with several cells: the cell that it leads, and what it tells the others."""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.cells import SharedWriter, VhostState
from gateway.cluster.leadership import LEADER_LOG
from gateway.cluster.metadata import Key
from gateway.cluster.queue_log import Epoch
from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import Clock
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.entity_codec import encode_entity
from gateway.kernel.journal.records.access import PermissionRecord, TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.logs import StructuredLog
from gateway.management.cells.cell_answer import CellAnswer, CellFlow, CellQuestion
from gateway.management.cells.cells import PlacedVhost
from gateway.management.cells.definitions import DefinitionParts, planned_cells, split, without_moves, without_vhosts
from gateway.management.cells.numbering import first_number
from gateway.node.cluster.cell_map import CellMap, entity_of, key_of
from gateway.node.cluster.definitions_delivery import DefinitionsDelivery
from gateway.node.cluster.user_counting import UserCounting

_log: Final = StructuredLog("cluster")

Ask = Callable[[int, CellQuestion, CellAnswer], CellFlow]
"""Asks the leader of a cell."""


class CellSeat:
    """The seat of the node of one cell while it leads, in the ``epoch`` of its claim. ``map`` has the other cells."""

    def __init__(self, cell: int, epoch: Epoch, map: CellMap, clock: Clock, ask: Ask) -> None:
        self.own = cell
        self.is_first = cell == LEADER_LOG
        self._epoch = epoch
        self._map = map
        self._clock = clock
        self._ask = ask
        self._broker: Broker | None = None
        self._writer: SharedWriter | None = None
        self._counting: UserCounting | None = None
        self._deliveries: list[DefinitionsDelivery] = []
        #: The keys of what has changed and is not in the log yet.
        self._unsettled: Counter[Key] = Counter()
        #: The virtual hosts with a record that requests use which did not place them; at most all with a record.
        self._kept: set[str] = set()
        #: The virtual hosts whose records are being deleted, because the request that placed them was refused.
        self._forgotten: set[str] = set()

    @property
    def api(self) -> "CellSeat":
        """This seat, as the HTTP API uses it."""
        return self

    # At the start of the node

    @property
    def has_vhosts(self) -> bool:
        """Whether the cluster has virtual hosts, in any cell."""
        return any(self._map.vhosts.names_in(cell) for cell in self._map.cells)

    def has(self, vhost: str) -> bool:
        """Whether a virtual host of the settings belongs to this cell."""
        cell = self._map.cell_of(vhost)
        return self.is_first if cell is None else cell == self.own

    def taking(self, broker: Broker) -> Iterator[None]:
        """Return the steps that make the broker have what the records say; called once, after its recovery."""
        self._broker = broker
        broker.user_tallies.elsewhere = partial(self._map.figures.elsewhere, self.own)
        self._counting = UserCounting(broker, self.own, self._epoch, self._clock, self._map.send_figures)
        self._clock.call_later(0, self._counting.start)
        for numbered in (broker.workbench, broker.audit):
            numbered.number_from(first_number(self.own))
        broker.events.subscribe(self._vhost_event, "vhost")
        if self.is_first:
            self._take_first(broker)
        else:
            broker.directory.is_copy = broker.parameters.are_global_copies = True
            for key in list(self._map.shared.by_key):
                self._apply(broker, key)
                yield
        for name in self._map.vhosts.names_in(self.own):
            self._take_vhost(broker, name)
            yield
        for name in list(broker.vhost_by_name):
            self._require_record(name)
            yield

    def _take_first(self, broker: Broker) -> None:
        """Begin to tell the other cells."""
        broker.events.subscribe(self._shared_event, "user", "permission", "topic", "parameter")
        self._writer = SharedWriter(self._map.shared, self, self._epoch, self._clock, Deferred.fromCoroutine)
        self._when_durable(lambda: broker.clock.background.add(self._comparing()))
        broker.clock.background.add(self._removing_stale_permissions(broker))

    def _require_record(self, name: str) -> None:
        """Write the record of a virtual host of this cell if it has none."""
        cell = self._map.cell_of(name)
        if cell is None:
            self._run(self._map.vhosts.make(name, self.own))
        elif cell != self.own:
            _log.error("a virtual host of this cell is in another one", vhost=name, cell=self.own, other=cell)

    def _comparing(self) -> Iterator[None]:
        if self._writer is not None:
            yield from self._writer.comparing()

    def _take_vhost(self, broker: Broker, name: str) -> None:
        """Make or delete a virtual host that a former leader has not."""
        place = self._map.vhosts.place_of(name)
        assert place is not None
        if place.state is VhostState.MADE:
            broker.declare_vhost(name)
        elif name in broker.vhost_by_name:
            broker.protect_vhost(name, False)
            broker.delete_vhost(name)
        else:
            self._run(self._map.vhosts.remove(name))

    def close(self) -> None:
        """Write nothing more, and apply nothing more."""
        self._broker = None
        if self._writer is not None:
            self._writer.close()
        if self._counting is not None:
            self._counting.close()
        for delivery in self._deliveries:
            delivery.close()

    def sharing(self, document: Any, default_vhost: str) -> Generator[None, None, DefinitionParts]:  # Any: JSON
        """Return the part of this cell of definitions, in steps; the others get theirs once this one is stored."""
        named = [str(each["name"]) for each in document.get("vhosts") or ()]
        if deleting := {name for name in named if self.is_being_deleted(name)}:
            _log.warning("definitions of virtual hosts that are being deleted are left out", vhosts=sorted(deleting))
            document = without_vhosts(document, deleting, default_vhost)
        document, moved = without_moves(self, document)
        if moved:
            _log.warning("definitions name another cell for virtual hosts that exist; they stay", vhosts=moved)
        planned = planned_cells(self, document)
        parts = yield from split(self, document, planned, default_vhost)
        if parts.others:
            delivery = DefinitionsDelivery(self, document, planned, default_vhost, self._clock)
            self._deliveries.append(delivery)
            self._when_durable(lambda: self._run(delivery.deliver()))
        return parts

    # What the records say

    def shared_changed(self, key: Key) -> None:
        """Take over a change of what all cells share; the first cell writes what a deposed leader wrote over."""
        broker = self._broker
        if broker is None:
            return
        if self._writer is not None:
            if not self._unsettled[key]:
                self._writer.repair(key)
            return
        self._apply(broker, key)
        broker.journal.flush()

    def _apply(self, broker: Broker, key: Key) -> None:
        """Let the broker have a shared record as it is now."""
        record = self._map.shared.by_key.get(key)
        entity = None if record is None else entity_of(key, record)
        if key[0] == ParameterRecord.kind:
            broker.parameters.take(key[1:], entity if isinstance(entity, ParameterRecord) else None)
        elif entity is None:
            broker.directory.apply(Removed(key[0], key[1:]))
        else:
            broker.directory.apply(Put(entity))

    def vhost_changed(self, name: str) -> None:
        """Repair the record of an own virtual host; remove the permissions of one that was deleted in another cell."""
        broker = self._broker
        if broker is None or self._map.cell_of(name) is not None:
            return
        self._kept.discard(name)
        if name in broker.vhost_by_name:
            # in a turn of its own: a leader that was paused finds out first that it has been deposed
            self._clock.call_later(0, partial(self._repair_record, name))
        elif self.is_first:
            broker.clock.background.add(broker.directory.removing_vhost(name))

    def _repair_record(self, name: str) -> None:
        if name in self._own_vhosts():
            _log.warning("the record of a virtual host is written again", vhost=name, cell=self.own)
            self._require_record(name)

    def _removing_stale_permissions(self, broker: Broker) -> Iterator[None]:
        """Return the steps that remove the permissions of virtual hosts that no cell has."""
        directory = broker.directory
        named = {each.vhost for each in directory.permissions} | {each.vhost for each in directory.topic_permissions}
        for name in named:
            if name not in broker.vhost_by_name and self._map.cell_of(name) is None:
                yield from directory.removing_vhost(name)

    # What the broker does

    def _vhost_event(self, event: Event) -> None:
        if event.name == "vhost.created":  # in other cells it has a record, unless that was deleted just now
            self._when_durable(lambda: self._run(self._map.vhosts.make(event.vhost, self.own)))
        elif event.name == "vhost.deleted":  # its record is removed in this turn, after the event
            self._clock.call_later(0, lambda: self._when_durable(partial(self._remove_record, event.vhost)))

    def _remove_record(self, vhost: str) -> None:
        self._run(self._map.vhosts.remove(vhost))

    def _shared_event(self, event: Event) -> None:
        for key in _keys_of(event):
            self._unsettled[key] += 1
            self._when_durable(partial(self._settled, key))

    def _settled(self, key: Key) -> None:
        self._unsettled[key] -= 1
        if self._writer is not None and not self._unsettled[key]:
            del self._unsettled[key]
            self._writer.write(key)

    def _when_durable(self, call: Callable[[], None]) -> None:
        broker = self._broker
        if broker is not None:
            broker.journal.when_durable(broker.journal.pending_lsn, call)

    def _run(self, change: Any) -> None:  # Any: a coroutine of the records
        """Make a change of the records; the next leader of the cell makes one that has failed."""
        done: Deferred[object] = Deferred.fromCoroutine(change)
        done.addErrback(lambda failure: _log.warning("a record was not written", reason=str(failure.value)))

    # The source of what all cells share

    def entity(self, key: Key) -> bytes | None:
        """Return an entity of the broker, as the store encodes it."""
        broker = self._broker
        found = None if broker is None else _found(broker, key)
        return None if found is None else encode_entity(found)

    def keys(self) -> Iterator[Key]:
        """Yield the keys of the entities that there are now."""
        broker = self._broker
        if broker is not None:
            shared = (each for each in broker.parameters.values() if not each.vhost)
            yield from map(key_of, [*broker.directory.entities(), *shared])

    # For the HTTP API

    @property
    def others(self) -> Sequence[int]:
        """The numbers of the other cells."""
        return [cell for cell in self._map.cells if cell != self.own]

    def cell_of(self, vhost: str) -> int | None:
        """Return the cell of a virtual host; ``None`` if it does not exist. One without a record is in the first."""
        cell = self._map.cell_of(vhost)
        return self.own if cell is None and self.is_first and vhost in self._own_vhosts() else cell

    def _own_vhosts(self) -> Collection[str]:
        return () if self._broker is None else self._broker.vhost_by_name

    def is_being_deleted(self, vhost: str) -> bool:
        """Whether a virtual host is being deleted."""
        place = self._map.vhosts.place_of(vhost)
        return place is not None and place.state is VhostState.DELETING

    def emptiest(self) -> int:
        """Return the cell with the fewest virtual hosts."""
        return self.spread({"": None})[""]

    def spread(self, wanted: Mapping[str, int | None]) -> dict[str, int]:
        """Return the cells of new virtual hosts: the wanted ones, else those with the fewest, the new ones included."""
        without_record = [name for name in self._own_vhosts() if self._map.cell_of(name) is None]
        return self._map.spread(wanted, {self.own: len(without_record)})

    def place(self, vhost: str, wanted: int | None = None) -> "Deferred[PlacedVhost]":
        """Choose the cell of a new virtual host, perhaps the wanted one; return it once all nodes know."""
        return Deferred.fromCoroutine(self._placing(vhost, wanted or self.emptiest()))

    async def _placing(self, vhost: str, cell: int) -> PlacedVhost:
        made = await self._map.vhosts.make(vhost, cell)
        if not made.is_new:
            self._kept.add(vhost)
        known: Deferred[None] = Deferred()
        self._map.when_vhost_known(made.revision, lambda: known.callback(None))
        await known
        return PlacedVhost(made.place.cell, made.is_new)

    def keep_placed(self, vhost: str) -> bool:
        """Keep the record of a virtual host, which another request may make; return whether it was there to keep."""
        if vhost in self._forgotten or self._map.cell_of(vhost) is None:
            return False
        self._kept.add(vhost)
        return True

    def forget_placed(self, vhost: str) -> None:
        """Delete the record of a virtual host that was placed and is not made after all, unless it must be kept."""
        if self._broker is not None and vhost not in self._broker.vhost_by_name and vhost not in self._kept:
            self._forgotten.add(vhost)
            self._run(self._forgetting(vhost))

    async def _forgetting(self, vhost: str) -> None:
        try:
            await self._map.vhosts.remove(vhost)
        finally:
            self._forgotten.discard(vhost)

    def mark_deleting(self, vhost: str) -> "Deferred[None]":
        """Note that a virtual host of this cell is being deleted, before it is."""
        return Deferred.fromCoroutine(self._map.vhosts.mark_deleting(vhost))

    def when_shared(self, call: Callable[[], None]) -> None:
        """Call back once the leaders of the other cells know of all changes of users and the like so far."""
        if self._writer is None:
            call()
        else:
            self._writer.when_written(lambda revision: self._map.when_shared_known(revision, call))

    def ask(self, cell: int, question: CellQuestion, answer: CellAnswer) -> CellFlow:
        """Let the leader of another cell answer a request."""
        return self._ask(cell, question, answer)


def _found(broker: Broker, key: Key) -> Entity | None:
    """Return an entity of a broker by the key of its shared record."""
    kind, *parts = key
    directory = broker.directory
    if kind == UserRecord.kind:
        return directory.user(parts[0])
    if kind == PermissionRecord.kind:
        return directory.permission(parts[0], parts[1])
    if kind == TopicPermissionRecord.kind:
        of_vhost = directory.topic_permissions_of(parts[0], parts[1])
        return next((each for each in of_vhost if each.exchange == parts[2]), None)
    if kind == ParameterRecord.kind:
        return broker.parameters.get(tuple(parts))
    return next((each for each in directory.entities() if key_of(each) == key), None)


def _keys_of(event: Event) -> Sequence[Key]:
    """Return the keys of what an event says has changed, if all cells share it."""
    if event.name.startswith(("user.created", "user.deleted", "user.tags.", "user.password.", "user.limits.")):
        return [(UserRecord.kind, event.subject)]
    if event.name.startswith("permission."):
        return [(PermissionRecord.kind, event.vhost, event.subject)]
    if event.name.startswith("topic.permission."):
        return [(TopicPermissionRecord.kind, event.vhost, event.subject, str(event.details["exchange"]))]
    if event.name.startswith("parameter.") and not event.vhost:
        return [(ParameterRecord.kind, "", str(event.details["component"]), event.subject)]
    return []
