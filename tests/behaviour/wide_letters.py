"""Queues that dead-letter to many others, and the turns in which their dead letters are published."""

from collections.abc import Callable
from typing import Final

from gateway.kernel.clock import PAUSE_S
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.testing import MemoryBroker
from tests.clocks import TurnClock

#: The queues of a fanout.
WIDTH: Final = 400


def fanout(broker: MemoryBroker, name: str, width: int = WIDTH, **arguments: Value) -> list[QueueLike]:
    """Declare a fanout exchange with durable queues; return the queues."""
    exchange = broker.vhost.declare_exchange(name, "fanout", is_durable=True)
    queues = []
    for number in range(width):
        given = {key.replace("_", "-"): value for key, value in arguments.items()}
        queue = broker.vhost.declare_queue(f"{name}{number}", is_durable=True, arguments=given or None)
        broker.vhost.bind(exchange, queue, "")
        queues.append(queue)
    return queues


def source(broker: MemoryBroker, exchange: str, **arguments: Value) -> QueueLike:
    """Declare a durable queue that dead-letters to an exchange."""
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    return broker.vhost.declare_queue(
        "source", is_durable=True, arguments={"x-dead-letter-exchange": exchange, **given}
    )


def waiting(queues: list[QueueLike]) -> int:
    return sum(len(queue) for queue in queues)


def run_turns(broker: MemoryBroker, count: Callable[[], int]) -> list[int]:
    """Run turns until nothing is left to do; return by how much ``count`` rose in each."""
    rises, before = [], count()
    assert isinstance(broker.clock, TurnClock)
    while broker.clock.turn(PAUSE_S):  # jobs pause while the store has much to write
        broker.commit()
        rises.append(count() - before)
        before = count()
    return rises


def targets_of(broker: MemoryBroker) -> list[QueueLike]:
    return [queue for name, queue in broker.vhost.queue_by_name.items() if name.startswith("wide")]


def require_each_once_in_slices(broker: MemoryBroker, targets: list[QueueLike]) -> None:
    """Run the turns; each target gets one dead letter, not half of them in one turn, and has it after a crash."""
    rises = run_turns(broker, lambda: waiting(targets))
    assert sum(rises) == len(targets)
    assert max(rises) < len(targets) // 2
    broker.commit()
    restarted = broker.crashed()
    run_turns(restarted, lambda: 0)
    assert [len(queue) for queue in targets_of(restarted)] == [1] * len(targets)


def pass_a_second(broker: MemoryBroker) -> None:
    """Advance the clock by a second without making the calls that are due."""
    assert isinstance(broker.clock, TurnClock)
    broker.clock.pass_without_calls(1)
