"""Reading the log of a queue up to the record of a claim."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.cluster.errors import ClusterError, Deposed, LogGap, Unanswered
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import Claim, Position, StoredBatch
from gateway_jetstream.jetstream.api import JetStreamApi
from gateway_jetstream.jetstream.push_consumer import PushConsumer
from gateway_jetstream.jetstream.stream_message import StreamMessage

#: The time between two looks for progress, in seconds.
_LOOK_S: Final = 2.0

#: The looks without progress after which a server that could be read from is suspected: nats-server 2.15 stops to
#: deliver at a damaged message, without an error and with heartbeats. And those after which there is no answer.
_SUSPECTED_AFTER: Final = 3
_UNANSWERED_AFTER: Final = 10


def start_after(position: Position) -> Mapping[str, Any]:
    """Return where a consumer begins that delivers what comes after a position."""
    if not position:
        return {"deliver_policy": "all"}
    return {"deliver_policy": "by_start_sequence", "opt_start_seq": position + 1}


class LogReader:
    """One read. A copy that delivers the record of the claim has applied everything before it."""

    def __init__(
        self,
        api: JetStreamApi,
        reactor: Any,  # Any: Twisted's interfaces are not types
        stream: str,
        own: str,
        log: str,
        claim: Claim,
        take: Callable[[StoredBatch], None],
        accepts: Callable[[str], bool],
        shuns: Callable[[str], bool],
        after: Position,
        gate: Gate,
    ) -> None:
        self._gate = gate
        self._reactor = reactor
        self._log = log
        self._claim = claim
        self._take = take
        self._done: Deferred[None] = Deferred(lambda done: self._stop())
        #: The server that was read from.
        self.source = ""
        self._seen = 0
        self._looks = 0
        self._consumer = PushConsumer(
            api,
            reactor,
            stream,
            [own, log],
            self._on_message,
            start=start_after(after),
            accepts=accepts,
            shuns=shuns,
            gate=gate,
        )
        self._timer = reactor.callLater(_LOOK_S, self._look)

    def finished(self) -> "Deferred[None]":
        """Wait for the end.

        :raises LogGap: if ``take`` does, or if the server delivers nothing more.
        :raises Deposed: if ``take`` does, or if there is a later claim.
        :raises Unanswered: if there is no progress.
        """
        return self._done

    def _on_message(self, message: StreamMessage) -> None:
        if self._done.called:
            return
        self.source = self._consumer.source
        if message.subject == self._log:
            try:
                self._take(StoredBatch(Position(message.sequence), message.payload))
            except ClusterError as error:
                self._end(error)
        elif message.sequence == self._claim.epoch:
            self._end(None)
        elif message.sequence > self._claim.epoch:
            self._end(Deposed(f"queue {self._claim.queue} was claimed after epoch {self._claim.epoch}"))

    def _look(self) -> None:
        """Give up after several looks without progress."""
        consumer = self._consumer
        self._looks = self._looks + 1 if consumer.last_sequence == self._seen and self._gate.is_open else 0
        self._seen = consumer.last_sequence
        queue = self._claim.queue
        if consumer.source and self._looks >= _SUSPECTED_AFTER:
            self.source = consumer.source
            self._end(LogGap(f"{self.source} delivers nothing of queue {queue} after position {self._seen}"))
        elif self._looks >= _UNANSWERED_AFTER:
            self._end(Unanswered(f"no batch of queue {queue} for {_LOOK_S * self._looks:g} s: {consumer.error}"))
        else:
            self._timer = self._reactor.callLater(_LOOK_S, self._look)

    def _stop(self) -> None:
        self._consumer.stop()
        if self._timer.active():
            self._timer.cancel()

    def _end(self, error: ClusterError | None) -> None:
        self._stop()
        if error is None:
            self._done.callback(None)
        else:
            self._done.errback(error)
