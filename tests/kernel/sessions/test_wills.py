"""Wills: published for disconnected clients, at once or after a delay, unless they reconnect before."""

import pytest

from gateway.kernel.messages.message import Message
from gateway.testing import MemoryBroker, Recipient, header_of
from tests.kernel.session_clients import Client, durable_entities


def leave_will(
    broker: MemoryBroker, delay_s: float = 0, *, is_retained: bool = False, client_id: str = "sensor"
) -> None:
    """Register the will ``gone`` on topic ``last`` for a disconnected client."""
    message = Message("amq.topic", "last", header_of(is_persistent=True), b"gone")
    broker.vhost.wills.leave(client_id, message, is_retained, delay_s)


def published_wills(broker: MemoryBroker) -> list[bytes]:
    """Return the bodies published since the last call."""
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("listener"))
    recipient.settle(0, up_to=True)
    recipient.leave()
    return recipient.bodies


@pytest.fixture
def broker_with_queue(broker: MemoryBroker) -> MemoryBroker:
    """A broker with a queue that gets the published wills."""
    queue = broker.vhost.declare_queue("listener", is_durable=True)
    broker.vhost.bind(broker.vhost.exchange("amq.topic"), queue, "last")
    broker.commit()
    return broker


def test_a_will_without_delay_is_published_at_once(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue)
    assert published_wills(broker_with_queue) == [b"gone"]
    assert len(broker_with_queue.vhost.wills) == 0


def test_a_delayed_will_is_published_after_its_delay(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30)
    broker_with_queue.advance(29.9)
    assert published_wills(broker_with_queue) == []
    broker_with_queue.advance(0.1)
    assert published_wills(broker_with_queue) == [b"gone"]
    broker_with_queue.advance(1000)
    assert published_wills(broker_with_queue) == []


def test_a_will_is_cancelled_when_its_client_reconnects(broker_with_queue: MemoryBroker) -> None:
    client = Client(broker_with_queue)
    client.connect()
    client.leave()
    leave_will(broker_with_queue, 30)
    client.connect()
    broker_with_queue.advance(1000)
    assert published_wills(broker_with_queue) == []
    broker_with_queue.commit()
    assert durable_entities(broker_with_queue, "will") == []


def test_a_will_is_not_cancelled_by_another_client(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30)
    Client(broker_with_queue, "other").connect()
    broker_with_queue.advance(30)
    assert published_wills(broker_with_queue) == [b"gone"]


@pytest.mark.parametrize("end", ["expiry", "clean start"])
def test_a_will_is_published_when_the_session_ends(broker_with_queue: MemoryBroker, end: str) -> None:
    client = Client(broker_with_queue)
    client.connect(expiry_s=20)
    client.leave()
    leave_will(broker_with_queue, 30)
    if end == "expiry":
        broker_with_queue.advance(20)
    else:
        client.connect(is_clean=True)
    assert published_wills(broker_with_queue) == [b"gone"]
    broker_with_queue.advance(1000)
    assert published_wills(broker_with_queue) == []


def test_a_will_with_the_retain_flag_is_retained(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30, is_retained=True)
    assert not broker_with_queue.vhost.retained.matching("last")
    broker_with_queue.advance(30)
    assert [message.body for message in broker_with_queue.vhost.retained.matching("last")] == [b"gone"]
    assert published_wills(broker_with_queue) == [b"gone"]


def test_a_will_without_its_exchange_is_only_retained(broker_with_queue: MemoryBroker) -> None:
    client = Message("no longer there", "last", header_of(), b"gone")
    broker_with_queue.vhost.wills.leave("sensor", client, True, 0)
    assert published_wills(broker_with_queue) == []
    assert len(broker_with_queue.vhost.retained) == 1


# ---- Restarts --------------------------------------------------------------------------------------------------------


def test_a_will_and_its_delay_survive_a_crash(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30, is_retained=True)
    broker_with_queue.commit()
    broker_with_queue.advance(20)
    restarted = broker_with_queue.crashed()
    restarted.advance(9.9)
    assert published_wills(restarted) == []
    restarted.advance(0.1)
    assert published_wills(restarted) == [b"gone"]
    assert len(restarted.vhost.retained) == 1


def test_a_will_due_during_the_downtime_is_published_at_the_start(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30)
    broker_with_queue.commit()
    broker_with_queue.clock.advance(0)
    later = broker_with_queue.stopped()
    later.clock.advance(1000)
    restarted = later.crashed()
    restarted.advance(0)
    assert published_wills(restarted) == [b"gone"]


def test_a_will_is_published_once_whenever_the_broker_crashes(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30)
    broker_with_queue.commit()
    broker_with_queue.advance(30)
    before_the_commit = broker_with_queue.crashed()
    before_the_commit.advance(0)
    assert published_wills(before_the_commit) == [b"gone"]
    broker_with_queue.commit()
    after_the_commit = broker_with_queue.crashed()
    after_the_commit.advance(1000)
    assert published_wills(after_the_commit) == [b"gone"]


def test_a_cancelled_will_stays_cancelled_after_a_crash(broker_with_queue: MemoryBroker) -> None:
    leave_will(broker_with_queue, 30)
    broker_with_queue.commit()
    broker_with_queue.vhost.wills.cancel("sensor")
    broker_with_queue.commit()
    restarted = broker_with_queue.crashed()
    restarted.advance(1000)
    assert published_wills(restarted) == []


def test_wills_are_deleted_with_their_virtual_host(broker: MemoryBroker) -> None:
    vhost = broker.kernel.declare_vhost("other")
    vhost.wills.leave("sensor", Message("amq.topic", "last", header_of(), b"gone"), True, 30)
    broker.kernel.delete_vhost("other")
    broker.advance(1000)
    broker.commit()
    assert durable_entities(broker) == []
