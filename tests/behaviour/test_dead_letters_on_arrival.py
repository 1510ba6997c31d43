"""Dead letters of messages that a queue drops when they arrive: many are published in later turns, none is lost."""

import pytest
from pamqp import commands

from gateway.api import DeathReason, FeatureQueue, Message, QueueFeature, QueueFeatureType, QueueSetting
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Recipient
from tests.behaviour.wide_letters import (
    WIDTH,
    fanout,
    pass_a_second,
    require_each_once_in_slices,
    run_turns,
    source,
    targets_of,
    waiting,
)
from tests.clocks import TurnClock
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import publish, wire
from tests.step_store import StepStore

VERY_MANY = MOST_QUEUES + 300


class Dropper(QueueFeature):
    """Drops every message that arrives."""

    def __init__(self, queue: FeatureQueue) -> None:
        pass

    def on_enqueue(self, message: Message) -> DeathReason:
        return DeathReason.EXPIRED


def use_dropper(vhost: VirtualHost) -> None:
    vhost.policy_applier.use_features([QueueFeatureType({"acme-drop": QueueSetting(lambda value: None)}, Dropper)])


def broker_with(width: int) -> MemoryBroker:
    """Return a broker whose queue ``source`` drops all messages, and dead-letters them to this number of queues."""
    broker = MemoryBroker(clock=TurnClock())
    use_dropper(broker.vhost)
    fanout(broker, "wide", width)
    source(broker, "wide", x_acme_drop=1)
    run_turns(broker, lambda: 0)
    return broker


@pytest.fixture
def very_wide() -> MemoryBroker:
    return broker_with(VERY_MANY)


def bodies_in(queue: QueueLike) -> list[bytes]:
    recipient = Recipient()
    recipient.consume(queue)
    return recipient.bodies


def test_a_dead_letter_for_very_many_queues_is_offered_in_slices(very_wide: MemoryBroker) -> None:
    targets = targets_of(very_wide)
    very_wide.publish("source", b"m", is_persistent=True)
    assert waiting(targets) == 0
    rises = run_turns(very_wide, lambda: waiting(targets))
    assert sum(rises) == len(targets)
    assert max(rises) < len(targets) // 2


def test_a_turn_publishes_a_bounded_number_of_dead_letters_in_order() -> None:
    broker = broker_with(WIDTH)
    targets = targets_of(broker)
    for number in range(20):
        broker.publish("source", b"%d" % number, is_persistent=True)
    assert waiting(targets) <= 1024 + WIDTH
    run_turns(broker, lambda: waiting(targets))
    assert bodies_in(targets[-1]) == [b"%d" % number for number in range(20)]


def test_the_publisher_waits_until_they_are_published(very_wide: MemoryBroker) -> None:
    very_wide.publish("source")
    work = very_wide.kernel.journal.budget.take_pending()
    assert work is not None
    assert not work.is_done
    run_turns(very_wide, lambda: 0)
    assert work.is_done


def test_a_crash_between_the_slices_neither_loses_nor_doubles_a_dead_letter(very_wide: MemoryBroker) -> None:
    very_wide.publish("source", b"m", is_persistent=True)
    very_wide.commit()
    assert isinstance(very_wide.clock, TurnClock)
    while waiting(targets_of(very_wide)) == 0:
        very_wide.clock.turn()
        very_wide.commit()
    assert waiting(targets_of(very_wide)) < VERY_MANY
    restarted = very_wide.crashed()
    assert waiting(targets_of(restarted)) == 0
    restarted.clock.advance(1)
    run_turns(restarted, lambda: 0)
    assert [len(queue) for queue in targets_of(restarted)] == [1] * VERY_MANY
    assert restarted.vhost.queue("source").pending_dead_letter_count == 0
    restarted.commit()
    again = restarted.crashed()
    again.clock.advance(1)
    run_turns(again, lambda: 0)
    assert waiting(targets_of(again)) == VERY_MANY


def test_nothing_remains_in_the_store(very_wide: MemoryBroker) -> None:
    very_wide.publish("source", b"m", is_persistent=True)
    run_turns(very_wide, lambda: 0)
    for queue in list(very_wide.vhost.queue_by_name.values()):
        very_wide.vhost.delete_queue(queue)
    run_turns(very_wide, lambda: 0)
    very_wide.commit()
    assert not very_wide.store.held_ids


def test_the_queue_that_dropped_it_may_be_deleted_meanwhile(very_wide: MemoryBroker) -> None:
    targets = targets_of(very_wide)
    very_wide.publish("source", b"m", is_persistent=True)
    very_wide.vhost.delete_queue(very_wide.vhost.queue("source"))
    run_turns(very_wide, lambda: 0)
    assert waiting(targets) == VERY_MANY
    very_wide.commit()
    assert waiting(targets_of(very_wide.crashed())) == VERY_MANY


def test_a_delayed_exchange_to_a_full_queue_dead_letters_in_slices() -> None:
    broker = MemoryBroker(clock=TurnClock())
    targets = fanout(broker, "wide", VERY_MANY)
    full = source(broker, "wide", x_max_length=1, x_overflow="reject-publish")
    late = broker.vhost.declare_exchange(
        "late", "x-delayed-message", is_durable=True, arguments={"x-delayed-type": "fanout"}
    )
    broker.vhost.bind(late, full, "")
    broker.publish("source", b"in the way", is_persistent=True)
    broker.publish("", b"late", exchange="late", is_persistent=True, headers={"x-delay": 1000})
    broker.commit()
    pass_a_second(broker)
    require_each_once_in_slices(broker, targets)


def test_a_commit_keeps_dead_letters_with_its_messages(gateway: Gateway, store: StepStore) -> None:
    use_dropper(gateway.vhost)
    wide = gateway.vhost.declare_exchange("wide", "fanout", is_durable=True)
    for number in range(VERY_MANY):
        gateway.vhost.bind(wide, gateway.vhost.declare_queue(f"wide{number}", is_durable=True), "")
    arguments = {"x-dead-letter-exchange": "wide", "x-acme-drop": 1}
    gateway.vhost.declare_queue("source", is_durable=True, arguments=arguments)
    gateway.vhost.declare_queue("plain", is_durable=True)
    gateway.settle()
    peer = gateway.connect()
    peer.send(commands.Tx.Select())
    peer.send(publish("", "source", b"m", delivery_mode=2), publish("", "plain", b"m", delivery_mode=2))
    store.sizes.clear()
    peer.io.take(wire(commands.Tx.Commit()))
    gateway.settle()
    restarted = Gateway(store=store.reopened())
    letters = restarted.vhost.queue("source").pending_dead_letter_count
    assert (letters, len(restarted.vhost.queue("plain"))) == (1, 1)
