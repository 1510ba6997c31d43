"""Following the log of a queue: its batches as they are stored."""

from collections.abc import Callable
from typing import Any, Final

from gateway.cluster.errors import ClusterError
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import LogFollower, Position, StoredBatch
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.pull_consumer import PullConsumer
from gateway_jetstream.jetstream.stream_message import StreamMessage
from gateway_jetstream.ports.log_reading import start_after

#: The time between two looks for progress while more is known to come, in seconds; and the looks without progress after
#: which a server is suspected: see ``log_reading``.
_LOOK_S: Final = 2.0
_SUSPECTED_AFTER: Final = 3


class LogFollow:
    """One following. An idle log costs a pull every two seconds.

    ``avoid`` is called with the server whose copy was of no use, and ``shuns`` tells whether it was.
    """

    def __init__(
        self,
        api: JetStreamApi,
        reactor: Any,  # Any: Twisted's interfaces are not types
        stream: str,
        log: str,
        follower: LogFollower,
        after: Position,
        gate: Gate,
        shuns: Callable[[str], bool],
        avoid: Callable[[str], None],
    ) -> None:
        self._reactor = reactor
        self._follower = follower
        self._gate = gate
        self._avoid = avoid
        self._is_stopped = False
        self._behind = 0
        self._seen = 0
        self._looks = 0
        self._timer: Any = None
        self._consumer = PullConsumer(
            api,
            reactor,
            stream,
            [log],
            self._on_message,
            start=start_after(after),
            accepts=lambda server: not shuns(server),
            shuns=shuns,
            gate=gate,
        )

    def stop(self) -> None:
        """Make no more calls."""
        self._is_stopped = True
        self._consumer.stop()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _on_message(self, message: StreamMessage) -> None:
        if self._is_stopped:
            return
        self._behind = message.pending
        if self._behind and self._timer is None:
            self._timer = self._reactor.callLater(_LOOK_S, self._look)
        try:
            self._follower.take(StoredBatch(Position(message.sequence), message.payload), message.pending)
        except ClusterError as error:
            self._end(str(error))

    def _look(self) -> None:
        """End after several looks without progress, although more is there."""
        consumer = self._consumer
        self._timer = None
        if not self._behind:
            self._looks = 0
            return
        is_stuck = consumer.last_sequence == self._seen and bool(consumer.source) and self._gate.is_open
        self._looks = self._looks + 1 if is_stuck else 0
        self._seen = consumer.last_sequence
        if self._looks >= _SUSPECTED_AFTER:
            self._end(f"{consumer.source} delivers nothing after position {self._seen}")
        else:
            self._timer = self._reactor.callLater(_LOOK_S, self._look)

    def _end(self, reason: str) -> None:
        if self._is_stopped:
            return
        self._avoid(self._consumer.source)
        self.stop()
        self._follower.on_ended(reason)
