"""The reads of streams that a member answers from its copies, at its management ports while they are passed on."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from twisted.internet.protocol import connectionDone

from gateway.archive.copy_encoder import CopyEncoder
from gateway.archive.schemas import worker_module
from gateway.config import Settings
from gateway.kernel.clock import Clock
from gateway.management.cluster_state import COPY_READS, COPY_ROWS
from gateway.management.pipeline.copied_stream import CopiedStream, CopyStore
from gateway.management.pipeline.copy_reads import CopyReads
from gateway.management.pipeline.reading import SplitReader
from gateway.management.web.connection import HttpProtocol
from gateway.management.web.factory import HttpFactory
from gateway.management.web.request import Request
from gateway.net.clock import slices_on
from gateway.net.forwarding.link import ClientSide, LeaderSide
from gateway.node.cluster.http_line import HttpLine
from gateway.node.cluster.local_copy import LocalCopy
from gateway.node.http import http_limits
from gateway.worker_process.process import WorkerProcess

#: The beginning of a read, and what it may become.
_READ: Final = re.compile(rb"GET /api/pipeline/[^/\s?]*/read[? ]")
_BEGINNING: Final = b"GET /api/pipeline/"
_LONGEST: Final = 4096


class CopyAnswers:
    """Answers the clients of one member whose first request reads a stream.

    ``copies`` are those of the cells, the first cell first. Owns the process that encodes, and the connections.
    """

    def __init__(
        self,
        settings: Settings,
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        copies: Callable[[], Sequence[LocalCopy]],
    ) -> None:
        limits = http_limits(settings)
        self._clock = clock
        self._copies = copies
        self._worker = WorkerProcess(reactor, worker_module())
        self._max_reads = settings.pipeline.reads
        self._reads = CopyReads(
            settings.node,
            self,
            self._line_of,
            self._reader_of,
            self._max_reads,
            limits.max_body_size,
            clock,
            slices_on(reactor, clock.monotonic_s),
        )
        self._factory = HttpFactory(self._reads, limits, reactor)
        self._lines: WeakKeyDictionary[Any, HttpLine] = WeakKeyDictionary()

    def figures(self) -> dict[str, int]:
        """Return how many reads were answered from copies, and how many rows they had."""
        counts = self._reads.counts
        return {COPY_READS: counts.reads, COPY_ROWS: counts.rows}

    def close(self) -> None:
        """End the process."""
        self._worker.stop()

    # Copies

    def epochs(self) -> Mapping[int, int]:
        """Return the epoch of each copy that can be read now, by its cell."""
        found = ((cell, copy.epoch) for cell, copy in enumerate(self._copies(), 1))
        return {cell: int(epoch) for cell, epoch in found if epoch}

    def store(self, cell: int) -> CopyStore | None:
        """Return the store of a cell's copy; ``None`` without one."""
        copies = self._copies()
        return copies[cell - 1].store if 0 < cell <= len(copies) else None

    def _reader_of(self, epoch: int) -> SplitReader[CopiedStream]:
        encoder = CopyEncoder(self._worker, epoch)
        return SplitReader(self._worker, encoder, self._max_reads, encoder.arrow_path)

    # Clients

    def answers(self, data: bytes) -> bool | None:
        """Whether a client begins with a read; ``None`` while that is not clear."""
        if _READ.match(data):
            return bool(self.epochs())
        is_open = data[: len(_BEGINNING)] == _BEGINNING[: len(data)] and b"\n" not in data and len(data) < _LONGEST
        return None if is_open and self.epochs() else False

    def serve(self, client: ClientSide, leader: LeaderSide, data: bytes) -> None:
        """Answer a client until it is gone, or the leader is."""
        transport: Any = client.transport
        protocol: Any = self._factory.buildProtocol(transport.getPeer())
        self._lines[protocol] = line = HttpLine(leader, self._clock, protocol.end_when_idle)
        is_open = True

        def leave() -> bool:
            nonlocal is_open
            if is_open:
                is_open = False
                line.close()
                protocol.connectionLost(connectionDone)
            return True

        client.tap, client.leaving = protocol.dataReceived, leave
        protocol.makeConnection(transport)
        protocol.dataReceived(data)

    def _line_of(self, request: Request) -> HttpLine:
        protocol = request.connection
        assert isinstance(protocol, HttpProtocol)
        return self._lines[protocol]
