"""The cells of a cluster as one of its nodes knows them: the virtual hosts of each, and what all of them share."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from twisted.internet.defer import Deferred, DeferredList

from gateway.cluster.bus import Bus, BusSeat, Reply
from gateway.cluster.cells import SharedRecord, SharedRecords, UserFigures, VhostRecords, decode_figures
from gateway.cluster.errors import ClusterError
from gateway.cluster.metadata import Key, Metadata, Revision
from gateway.kernel.clock import Clock
from gateway.kernel.errors import GatewayError
from gateway.kernel.journal.entity_codec import decode_entity
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value
from gateway.logs import StructuredLog

_log: Final = StructuredLog("cluster")

#: How long the answer to an operator waits for a node that does not say that it knows of a change, in seconds.
_KNOWN_S: Final = 2.0

#: So many requests of other nodes wait at most.
_MOST_ASKED: Final = 1000

_VHOSTS: Final = "vhosts"
_SHARED: Final = "shared"


class CellMap:
    """The records of the cells, as this node knows them.

    ``others`` returns the other nodes that are alive: they say when they know of a change. ``on_vhost`` and
    ``on_shared`` are called with the name or the key of what has changed.
    """

    def __init__(
        self, metadata: Metadata, bus: Bus, clock: Clock, node: str, count: int, others: Callable[[], Sequence[str]]
    ) -> None:
        self.cells = tuple(range(1, count + 1))
        self.on_vhost: Callable[[str], None] = lambda name: None
        self.on_shared: Callable[[Key], None] = lambda key: None
        self.vhosts = VhostRecords(metadata, self._vhost_changed)
        self.shared = SharedRecords(metadata, self._shared_changed)
        self.vhosts.reached = self.shared.reached = self._answer
        self.figures = UserFigures(clock)
        self.global_parameters: dict[tuple[Value, ...], ParameterRecord] = {}
        self._bus = bus
        self._node = node
        self._others = others
        self._seat: BusSeat | None = None
        #: The requests of other nodes that wait for a change, by kind and revision.
        self._asked: list[tuple[str, Revision, Reply]] = []
        self._known_by_all: dict[str, Revision] = {}

    async def open(self) -> None:
        """Begin to watch, and wait until all records are known."""
        vhosts: Deferred[None] = Deferred()
        shared: Deferred[None] = Deferred()
        self.vhosts.start(lambda: vhosts.callback(None))
        self.shared.start(lambda: shared.callback(None))
        await vhosts
        await shared
        self._seat = self._bus.join(self._node, self)

    def close(self) -> None:
        """Stop: make no more calls."""
        self.vhosts.close()
        self.shared.close()
        if self._seat is not None:
            self._seat.leave()

    def cell_of(self, vhost: str) -> int | None:
        """Return the cell of a virtual host; ``None`` if it does not exist."""
        return self.vhosts.cell_of(vhost)

    def spread(self, wanted: Mapping[str, int | None], further: Mapping[int, int]) -> dict[str, int]:
        """Return the cells of new virtual hosts: the wanted ones, else those with the fewest, the new ones included.

        ``further`` are the numbers of virtual hosts of cells that have no record yet.
        """
        counts = {cell: len(self.vhosts.names_in(cell)) + further.get(cell, 0) for cell in self.cells}
        for cell in wanted.values():
            if cell is not None:
                counts[cell] += 1
        found: dict[str, int] = {}
        for name, cell in wanted.items():
            found[name] = cell or min(counts, key=lambda each: (counts[each], each))
            if cell is None:
                counts[found[name]] += 1
        return found

    # Changes of records

    def _vhost_changed(self, name: str) -> None:
        self.on_vhost(name)

    def _shared_changed(self, key: Key) -> None:
        if key[0] == ParameterRecord.kind:
            record = self.shared.by_key.get(key)
            parameter = None if record is None else entity_of(key, record)
            self.global_parameters.pop(key[1:], None)
            if isinstance(parameter, ParameterRecord):
                self.global_parameters[parameter.key] = parameter
        self.on_shared(key)

    # What other nodes know

    def when_vhost_known(self, revision: Revision, known: Callable[[], None]) -> None:
        """Call back when all nodes know of a record of a virtual host, or do not say so in time."""
        self._when_known(_VHOSTS, revision, known)

    def when_shared_known(self, revision: Revision, known: Callable[[], None]) -> None:
        """Call back when the leaders of all cells have a shared record, or do not say so in time."""
        self._when_known(_SHARED, revision, known)

    def _when_known(self, kind: str, revision: Revision, known: Callable[[], None]) -> None:
        if revision <= self._known_by_all.get(kind, 0):
            known()
            return
        asked = [self._ask(node, kind, revision) for node in self._others()]

        def answered(_: object) -> None:
            self._known_by_all[kind] = max(revision, self._known_by_all.get(kind, Revision(0)))
            known()

        DeferredList(asked).addCallback(answered)

    def _ask(self, node: str, kind: str, revision: Revision) -> "Deferred[None]":
        asked: Deferred[None] = Deferred()

        def answered(answer: bytes | ClusterError) -> None:
            if isinstance(answer, ClusterError):
                _log.info("a node does not know of a change yet", node=node, reason=str(answer))
            asked.callback(None)

        self._bus.request(node, encode_question(kind, revision), answered, _KNOWN_S)
        return asked

    def on_request(self, body: bytes, reply: Reply) -> None:
        """Answer another node once this one knows of a change."""
        question = decode_question(body)
        if question is not None:  # else it is of a newer gateway, and gets no answer
            self._asked = [*self._asked[-_MOST_ASKED:], (*question, reply)]
            self._answer()

    def send_figures(self, frame: bytes) -> None:
        """Send the figures of users in a cell that this node leads to all nodes, and note them here."""
        self.on_frame(frame)
        for node in self._others():
            self._bus.send(node, frame)

    def on_frame(self, frame: bytes) -> None:
        """Note the figures of users in a cell; ignore other frames."""
        figures = decode_figures(frame)
        if figures is not None and figures.cell in self.cells:
            self.figures.take(figures)

    def _answer(self) -> None:
        revisions: Mapping[str, Revision] = {_VHOSTS: self.vhosts.revision, _SHARED: self.shared.revision}
        asked, self._asked = self._asked, []
        for kind, revision, reply in asked:
            if revisions.get(kind, 0) >= revision:
                reply(b"{}")
            else:
                self._asked.append((kind, revision, reply))


def encode_question(kind: str, revision: Revision) -> bytes:
    """Return the request of a node that wants to know when another one knows of a change, as JSON."""
    return json.dumps({"knows": kind, "revision": revision}).encode()


def decode_question(body: bytes) -> tuple[str, Revision] | None:
    """Return the kind and the revision of a request; ``None`` if it cannot be read."""
    try:
        fields = json.loads(body)
        return str(fields["knows"]), Revision(int(fields["revision"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def key_of(entity: Entity) -> Key:
    """Return the key of the shared record of an entity."""
    return (entity.kind, *(str(part) for part in entity.key))


def entity_of(key: Key, record: SharedRecord) -> Entity | None:
    """Return the entity of a shared record; ``None`` if it cannot be read."""
    try:
        return decode_entity(key[0], record.entity)
    except GatewayError as error:
        _log.error("a shared record cannot be read", key="/".join(key), reason=str(error))
        return None
