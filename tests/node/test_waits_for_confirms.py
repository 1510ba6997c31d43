"""A broker that stops waits for its last confirms, unless its store cannot write."""

from collections.abc import Callable

import pytest
from twisted.internet.testing import MemoryReactorClock

from gateway.kernel.alarms import Resource
from gateway.kernel.broker.broker import Broker
from gateway.node.last_confirms import LastConfirms
from gateway.testing import MemoryBroker


class Peer:
    """A connection that notes whether it is held back."""

    is_held_back = False
    name = vhost_name = user_name = ""

    def hold_back(self) -> None:
        self.is_held_back = True

    def fail_confirms(self) -> None:
        """Do nothing."""

    def update_flow_control(self) -> None:
        """Do nothing."""


class Stopping:
    """A broker whose present turn has declared a queue, and the last confirms of it."""

    def __init__(self) -> None:
        memory = MemoryBroker()
        memory.commit()
        self.store, self.broker = memory.store, memory.kernel
        self.reactor = MemoryReactorClock()
        self.peer = Peer()
        self.broker.connections.add(self.peer)  # type: ignore[arg-type]  # it has what is called here
        memory.vhost.declare_queue("orders", is_durable=True)
        self.ends = 0
        self.turns = 0
        self.confirms = LastConfirms(self.broker, self.reactor, self._end_turn)

    def _end_turn(self) -> None:
        self.turns += 1
        self.broker.journal.flush()

    def wait(self) -> None:
        self.confirms.wait(self._end)

    def _end(self) -> None:
        self.ends += 1


@pytest.fixture
def stopping() -> Stopping:
    return Stopping()


def test_clients_are_held_back_until_what_was_read_is_stored(stopping: Stopping) -> None:
    stopping.wait()
    assert (stopping.ends, stopping.peer.is_held_back) == (0, True)
    stopping.store.commit()
    stopping.reactor.advance(0)
    assert stopping.ends == 1
    stopping.reactor.advance(10)
    assert stopping.ends == 1


def test_a_store_that_is_late_is_not_waited_for(stopping: Stopping) -> None:
    stopping.wait()
    stopping.reactor.advance(1.9)
    assert stopping.ends == 0
    stopping.reactor.advance(0.2)
    assert stopping.ends == 1


def test_nothing_is_waited_for_if_all_is_stored(stopping: Stopping) -> None:
    stopping.broker.journal.flush()
    stopping.store.commit()
    stopping.wait()
    assert (stopping.ends, stopping.peer.is_held_back) == (1, False)


@pytest.mark.parametrize(
    "fail",
    [
        lambda broker: setattr(broker.journal, "has_failed", True),
        lambda broker: broker.alarms.set(Resource.STORE, True),
    ],
    ids=["failed", "stalled"],
)
def test_a_store_that_cannot_write_ends_the_wait_in_the_same_turn(
    stopping: Stopping, fail: Callable[[Broker], None]
) -> None:
    fail(stopping.broker)
    stopping.wait()
    assert (stopping.ends, stopping.turns) == (1, 0)


def test_a_store_that_fails_later_ends_it_too(stopping: Stopping) -> None:
    stopping.confirms.end()
    stopping.wait()
    stopping.confirms.end()
    assert stopping.ends == 1
