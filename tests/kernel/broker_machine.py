"""Bases of state machines: a broker in memory, and recipients that use several of its queues.

A subclass has the model and the steps of its own; the bases have the steps and the checks that need no model.
"""

from collections.abc import Iterator, Sized
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker, Received, Recipient
from tests.kernel.buffered_room import buffered_room


class BrokerMachine(RuleBasedStateMachine):
    """Random use of one broker. A subclass creates ``broker`` in its first step."""

    broker: MemoryBroker

    def crash(self, *, is_committed: bool = True) -> None:
        """Kill the broker, after a commit or without one, and start another one on its store."""
        if is_committed:
            self.broker.commit()
        self.broker = self.broker.crashed()

    def empty(self) -> None:
        """Settle and remove all messages. Overridden by subclasses."""

    @invariant()
    def the_budget_in_use_matches_the_kept_messages(self) -> None:
        reserve = self.broker.kernel.reserve
        assert reserve.taken == buffered_room(self.broker) <= reserve.size

    def teardown(self) -> None:
        """Check that the store and the memory budget are empty once all messages are gone."""
        if not hasattr(self, "broker"):
            return
        self.empty()
        self.broker.commit()
        assert self.broker.kernel.reserve.taken == 0
        assert self.broker.store.held_ids == frozenset()


class RecipientMachine(BrokerMachine):
    """Random use of ``queues`` by ``recipients``.

    ``log`` are the deliveries that ``check_deliveries`` has not seen yet. ``held`` are the unsettled deliveries by
    recipient and tag, with a value of the model.
    """

    queues: dict[str, Queue]
    recipients: list[Recipient]
    log: list[tuple[Recipient, Received]]
    held: dict[tuple[Recipient, int], Any]  # Any: a value of the model

    def open_recipients(self, *prefetches: int) -> None:
        """Replace the recipients by new ones without deliveries; each has a shared prefetch limit, 0 for none."""
        self.log = []
        self.recipients = [Recipient(self.log, prefetch=prefetch) for prefetch in prefetches]
        self.held = {}

    # Overridden by subclasses

    def check_deliveries(self) -> None:
        """Compare the deliveries in ``log`` with the model, and clear it."""
        raise NotImplementedError

    def conclude(self, held: tuple[Recipient, int], outcome: DeliveryOutcome) -> None:
        """Settle one delivery of the model."""
        raise NotImplementedError

    def ready_in_model(self, name: str) -> Sized:
        """Return the ready messages of a queue of the model."""
        raise NotImplementedError

    def clear_model(self, name: str) -> None:
        """Remove the ready messages of a queue of the model."""
        raise NotImplementedError

    # Steps

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(DeliveryOutcome), up_to=st.booleans())
    def settle(self, data: st.DataObject, outcome: DeliveryOutcome, up_to: bool) -> None:
        recipient, tag = data.draw(st.sampled_from(list(self.held)), label="delivery")
        for held in [*self.held_by(recipient)]:
            if held[1] == tag or (up_to and held[1] < tag):
                self.conclude(held, outcome)
        recipient.settle(tag, outcome, up_to=up_to)
        self.check_deliveries()

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        recipient = self.any_recipient(data)
        if recipient.consumers:
            recipient.cancel(data.draw(st.sampled_from(recipient.consumers), label="consumer"))
            self.check_deliveries()

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.disconnect(self.any_recipient(data))

    @rule(data=st.data())
    def close_or_open_the_output(self, data: st.DataObject) -> None:
        recipient = self.any_recipient(data)
        recipient.is_open = not recipient.is_open
        if recipient.is_open:
            recipient.resume()
        self.check_deliveries()

    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        name = self.any_queue(data)
        assert self.queues[name].drops.purge() == len(self.ready_in_model(name))
        self.clear_model(name)

    @rule()
    def end_turn(self) -> None:
        self.broker.end_turn()

    # Parts of steps

    def any_recipient(self, data: st.DataObject) -> Recipient:
        return self.recipients[data.draw(st.integers(0, len(self.recipients) - 1), label="recipient")]

    def any_queue(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(list(self.queues)), label="queue")

    def held_by(self, recipient: Recipient) -> Iterator[tuple[Recipient, int]]:
        """Yield the unsettled deliveries of a recipient."""
        return (held for held in self.held if held[0] is recipient)

    def disconnect(self, recipient: Recipient) -> None:
        """Disconnect a recipient: its deliveries are requeued, its consumers are gone."""
        for held in [*self.held_by(recipient)]:
            self.conclude(held, DeliveryOutcome.REQUEUED)
        recipient.leave()
        self.check_deliveries()

    def empty(self) -> None:
        """Settle and remove all messages."""
        for recipient in self.recipients:
            recipient.leave()
        for queue in self.queues.values():
            queue.drops.purge()
