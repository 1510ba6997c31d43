"""Dead letters while a step of the store is open: a crash keeps a letter and its message's removal, or neither."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.kernel.journal.open_step import OpenStep
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.testing import MemoryBroker, Recipient
from tests.behaviour.wide_letters import fanout, run_turns, source
from tests.clocks import TurnClock


@pytest.fixture
def broker() -> MemoryBroker:
    """A broker with the queue ``source`` of one message, which dead-letters to the exchange ``dead``."""
    broker = MemoryBroker(clock=TurnClock())
    broker.vhost.declare_exchange("dead", "fanout", is_durable=True)
    source(broker, "dead", x_max_length=1)
    return broker


def bind(broker: MemoryBroker, queue_type: str) -> QueueLike:
    """Bind a queue of a type, ``letters``, to the dead-letter exchange."""
    queue = broker.vhost.declare_queue("letters", is_durable=True, arguments={"x-queue-type": queue_type})
    broker.vhost.bind(broker.vhost.exchange("dead"), queue, "")
    return queue


@contextmanager
def entered(broker: MemoryBroker, step: OpenStep) -> Iterator[None]:
    """Make changes in a step."""
    broker.kernel.journal.enter(step)
    yield
    broker.kernel.journal.leave()


def lengths_after_crash(broker: MemoryBroker) -> tuple[int, int]:
    """Return the numbers of messages in ``source`` and ``letters`` after a commit and a crash."""
    broker.commit()
    restarted = broker.crashed()
    return len(restarted.vhost.queue("source")), len(restarted.vhost.queue("letters"))


def end(broker: MemoryBroker, step: OpenStep) -> None:
    """Close the step, and run the turns."""
    broker.kernel.journal.close_step(step)
    run_turns(broker, lambda: 0)


def test_another_client_drops_a_message_of_an_open_step(broker: MemoryBroker) -> None:
    letters = bind(broker, "classic")
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
    broker.publish("source", b"2", is_persistent=True)
    assert lengths_after_crash(broker) == (1, 0)
    end(broker, step)
    assert len(letters) == 1
    assert lengths_after_crash(broker) == (1, 1)


def test_a_drop_that_an_open_step_postpones_waits_for_the_step(broker: MemoryBroker) -> None:
    bind(broker, "classic")
    postponed = broker.vhost.dead_letters.postponed
    postponed.add(lambda: None)
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
        broker.publish("source", b"2", is_persistent=True)
    clock = broker.clock
    assert isinstance(clock, TurnClock)
    for _ in range(5):
        clock.turn()
    assert lengths_after_crash(broker) == (0, 0)
    end(broker, step)
    assert lengths_after_crash(broker) == (1, 1)


def test_a_refused_message_of_an_open_step_is_dead_lettered_with_the_step(broker: MemoryBroker) -> None:
    broker.vhost.delete_queue(broker.vhost.queue("source"))
    source(broker, "dead", x_max_length=0, x_overflow="reject-publish-dlx")
    bind(broker, "classic")
    broker.vhost.dead_letters.postponed.add(lambda: None)
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
    assert isinstance(broker.clock, TurnClock)
    broker.clock.turn()
    assert lengths_after_crash(broker) == (0, 0)
    end(broker, step)
    assert lengths_after_crash(broker) == (0, 1)


def test_streams_get_the_letters_of_a_step_after_it(broker: MemoryBroker) -> None:
    letters = bind(broker, "stream")
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
        broker.publish("source", b"2", is_persistent=True)
    broker.publish("letters", b"other", is_persistent=True)
    assert lengths_after_crash(broker) == (0, 1)
    end(broker, step)
    assert len(letters) == 2
    assert lengths_after_crash(broker) == (1, 2)


def test_letters_keep_their_order_while_a_step_is_open(broker: MemoryBroker) -> None:
    bind(broker, "classic")
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
    for number in range(2, 6):
        broker.publish("source", b"%d" % number, is_persistent=True)
    end(broker, step)
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("letters"))
    assert recipient.bodies == [b"1", b"2", b"3", b"4"]


def test_the_publisher_that_drops_a_message_of_an_open_step_waits_for_it(broker: MemoryBroker) -> None:
    bind(broker, "classic")
    step = broker.kernel.journal.open_step()
    with entered(broker, step):
        broker.publish("source", b"1", is_persistent=True)
    broker.publish("source", b"2", is_persistent=True)
    work = broker.kernel.journal.budget.take_pending()
    assert work is not None
    assert not work.is_done
    end(broker, step)
    assert work.is_done


def test_the_letters_of_a_wide_message_to_a_stream_wait_for_its_last_offer(broker: MemoryBroker) -> None:
    letters = bind(broker, "stream")
    targets = fanout(broker, "wide", 2100, x_max_length=0, x_dead_letter_exchange="dead")
    broker.publish("", b"m", exchange="wide", is_persistent=True)
    assert isinstance(broker.clock, TurnClock)
    broker.commit()
    assert len(letters) == 0
    assert len(broker.crashed().vhost.queue("letters")) == 0
    run_turns(broker, lambda: 0)
    broker.commit()
    assert len(letters) == len(targets)
    assert len(broker.crashed().vhost.queue("letters")) == len(targets)
