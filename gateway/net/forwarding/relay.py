"""A client's connection that outlives the leader: the bytes pass through what is remembered of it.

While there is no leader the client is read once, to see whether it waits for an answer. Another leader is told first
what the former one knew.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.kernel.clock import Clock
from gateway.net.forwarding.link import Side
from gateway.net.forwarding.resumable import Resumable

#: Reasons why a client is not read.
_NO_LEADER: Final = "no leader"
_IS_FULL: Final = "too much waits for answers"
_OUTPUT: Final = "the leader does not take it"


class Valve:
    """The reading from a client, which goes on when no reason is left against it. It is a producer for Twisted."""

    def __init__(self, transport: Any) -> None:  # Any: Twisted's interfaces are not types
        self._transport = transport
        self._reasons = {_NO_LEADER}

    def set(self, reason: str, *, is_closed: bool) -> None:
        """Add or remove a reason."""
        if is_closed and not self._reasons:
            self._transport.pauseProducing()
        was_closed = bool(self._reasons)
        (self._reasons.add if is_closed else self._reasons.discard)(reason)
        if was_closed and not self._reasons:
            self._transport.resumeProducing()

    def pauseProducing(self) -> None:
        """Stop: the leader takes no more for now."""
        self.set(_OUTPUT, is_closed=True)

    def resumeProducing(self) -> None:
        """Go on: the leader takes more."""
        self.set(_OUTPUT, is_closed=False)

    def stopProducing(self) -> None:
        """Do nothing: the end of the leader is noticed by its connection."""


class ResumingRelay:
    """Owns what passes between a ``client`` and one leader after the other.

    ``held`` is called when the leader is lost and the client waits for another one, ``ended`` when it is
    told that no leader can go on with it, ``rerouted`` when the leader of another cell serves it. ``left_in_order``:
    the leader said that it ends. ``is_resumed``: there was a leader before. ``asked_s`` is the time since when the
    client waits for an answer that no leader can give; ``None`` while it does not.
    """

    def __init__(
        self,
        client: Side,
        resumable: Resumable,
        clock: Clock,
        held: Callable[[], None],
        ended: Callable[[], None] = lambda: None,
        rerouted: Callable[[], None] = lambda: None,
    ) -> None:
        self.left_in_order = False
        self.is_resumed = False
        self.asked_s: float | None = None
        self._client = client
        self._resumable = resumable
        self._clock = clock
        self._held = held
        self._ended: Callable[[], None] | None = ended
        self._rerouted = rerouted
        self._is_rerouted = False
        self._leader: Side | None = None
        self._valve = Valve(client.transport)
        self._beaten_s = 0.0
        client.tap = self._client_sent

    @property
    def is_restoring(self) -> bool:
        """Whether a new leader is being told what the former one knew."""
        return self._resumable.is_restoring

    def join(self, leader: Side) -> None:
        """Pass bytes on to this leader, and back; first tell it what a former one knew."""
        client, self._leader = self._client, leader
        leader.other, client.other = client, leader
        leader.tap, leader.leaving = partial(self._leader_sent, leader), partial(self._leader_leaves, leader)
        line: Any = leader.transport
        own: Any = client.transport
        line.registerProducer(self._valve, True)
        own.registerProducer(line, True)
        if self.is_resumed or self._is_rerouted:
            self._is_rerouted = False
            self._resumable.leader_found()
        self._flush()

    def beat(self) -> None:
        """Send the client a sign of life in time, while no leader does."""
        interval_s, now_s = self._resumable.heartbeat_s / 2, self._clock.monotonic_s()
        if interval_s and now_s - self._beaten_s >= interval_s:
            self._beaten_s = now_s
            self._resumable.beat()
            self._flush()

    def tell_held(self) -> None:
        """Tell the client that publishes wait for another leader, if it publishes."""
        self._resumable.tell_held()
        if self._resumable.waiting.for_client:
            self._flush()

    def give_up(self, reason: str) -> None:
        """Tell the client that its connection ends, and end it once the client has left."""
        self._resumable.give_up(reason)
        self._flush()

    def _client_sent(self, data: bytes) -> None:
        self._resumable.receive_from_client(data)
        if self._resumable.is_rerouted:
            self._reroute()
        self._flush()

    def _reroute(self) -> None:
        """Leave the leader, which knows nothing yet that has to be ended, for that of the client's virtual host."""
        leader = self._leader
        self._detach()
        self._resumable.is_rerouted = False
        self._is_rerouted = True
        if leader is not None:
            leader.abort()
        self._rerouted()

    def _leader_sent(self, leader: Side, data: bytes) -> None:
        if leader is not self._leader:
            return
        self._resumable.receive_from_leader(data)
        self._flush()
        is_ending = leader is self._leader and self._resumable.has_leader_ended
        if is_ending and self._leader_leaves(leader, is_orderly=True):
            leader.finish()

    def _flush(self) -> None:
        """Write what is due, and read the client or not."""
        resumable = self._resumable
        own: Any = self._client.transport
        if (data := resumable.waiting.take_for_client()) and not self._client.is_lost:
            own.write(data)
        if resumable.is_over:
            self._part()
            return
        if self._leader is not None:
            line: Any = self._leader.transport
            if data := resumable.waiting.take_for_leader():
                line.write(data)
        self._valve.set(_NO_LEADER, is_closed=self._is_held_back)
        self._note_question()
        self._valve.set(_IS_FULL, is_closed=resumable.is_full)

    @property
    def _is_held_back(self) -> bool:
        """Whether the client is not read for want of a leader: one that is held is read until it sends something."""
        resumable = self._resumable
        if resumable.is_restoring:
            return True
        return self._leader is None and (not self.is_resumed or bool(resumable.waiting.early))

    def _note_question(self) -> None:
        if self._leader is not None or not self._resumable.awaits_answer:
            self.asked_s = None
        elif self.asked_s is None:
            self.asked_s = self._clock.monotonic_s()

    def _leader_leaves(self, leader: Side, *, is_orderly: bool = False) -> bool:
        """Hold the client if another leader can go on with it; return whether the end was taken care of."""
        if leader is not self._leader:
            return True
        if self._client.is_lost or self._client.has_ended:
            return False
        is_held = self._resumable.leader_lost()
        self.left_in_order = is_orderly
        if is_held:
            self._detach()
            self.is_resumed = True
        self._flush()
        if is_held:
            self._held()
        return is_held or self._resumable.is_over

    def _detach(self) -> None:
        leader, self._leader = self._leader, None
        self._valve.set(_OUTPUT, is_closed=False)  # the next leader takes as much as it can
        own: Any = self._client.transport
        if leader is not None:
            leader.other = self._client.other = None
            own.unregisterProducer()

    def _part(self) -> None:
        """End a client, or wait until one that was told of the end has left; what it sends is not used."""
        leader = self._leader
        self._detach()
        if leader is not None:
            leader.abort()
        ended, self._ended = self._ended, None
        if ended is not None and not self._resumable.is_closing:
            ended()
        for reason in (_NO_LEADER, _IS_FULL, _OUTPUT):
            self._valve.set(reason, is_closed=False)
        if self._resumable.awaits_client:
            self._client.linger()
        else:
            self._client.finish()
