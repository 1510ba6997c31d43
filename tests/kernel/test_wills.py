"""Wills: published for clients that vanish, at once or after a delay, unless they come back before."""

import pytest

from gateway.kernel.messages.message import Message
from gateway.testing import MemoryBroker, Recipient, header_of
from tests.kernel.session_clients import Client, durable_entities


def left(broker: MemoryBroker, delay_s: float = 0, *, is_retained: bool = False, client_id: str = "sensor") -> None:
    """Leave a will for a client that is gone: ``gone`` under the topic ``last``."""
    message = Message("amq.topic", "last", header_of(is_persistent=True), b"gone")
    broker.vhost.wills.leave(client_id, message, is_retained, delay_s)


def heard(broker: MemoryBroker) -> list[bytes]:
    """Return what was published since the last look."""
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("listener"))
    recipient.settle(0, up_to=True)
    recipient.leave()
    return recipient.bodies


@pytest.fixture
def listening(broker: MemoryBroker) -> MemoryBroker:
    """A broker where somebody hears the wills."""
    queue = broker.vhost.declare_queue("listener", is_durable=True)
    broker.vhost.bind(broker.vhost.exchange("amq.topic"), queue, "last")
    broker.commit()
    return broker


def test_a_will_without_delay_is_published_at_once(listening: MemoryBroker) -> None:
    left(listening)
    assert heard(listening) == [b"gone"]
    assert len(listening.vhost.wills) == 0


def test_one_with_a_delay_waits_for_it(listening: MemoryBroker) -> None:
    left(listening, 30)
    listening.advance(29.9)
    assert heard(listening) == []
    listening.advance(0.1)
    assert heard(listening) == [b"gone"]
    listening.advance(1000)
    assert heard(listening) == []


def test_it_is_cancelled_by_a_client_that_comes_back(listening: MemoryBroker) -> None:
    client = Client(listening)
    client.connect()
    client.leave()
    left(listening, 30)
    client.connect()
    listening.advance(1000)
    assert heard(listening) == []
    listening.commit()
    assert durable_entities(listening, "will") == []


def test_it_is_not_cancelled_by_another_client(listening: MemoryBroker) -> None:
    left(listening, 30)
    Client(listening, "other").connect()
    listening.advance(30)
    assert heard(listening) == [b"gone"]


@pytest.mark.parametrize("end", ["expiry", "clean start"])
def test_it_is_published_when_the_session_ends(listening: MemoryBroker, end: str) -> None:
    client = Client(listening)
    client.connect(expiry_s=20)
    client.leave()
    left(listening, 30)
    if end == "expiry":
        listening.advance(20)
    else:
        client.connect(is_clean=True)
    assert heard(listening) == [b"gone"]
    listening.advance(1000)
    assert heard(listening) == []


def test_it_is_retained_if_the_client_wanted_that(listening: MemoryBroker) -> None:
    left(listening, 30, is_retained=True)
    assert not listening.vhost.retained.matching("last")
    listening.advance(30)
    assert [message.body for message in listening.vhost.retained.matching("last")] == [b"gone"]
    assert heard(listening) == [b"gone"]


def test_without_its_exchange_it_is_lost_but_retained(listening: MemoryBroker) -> None:
    client = Message("no longer there", "last", header_of(), b"gone")
    listening.vhost.wills.leave("sensor", client, True, 0)
    assert heard(listening) == []
    assert len(listening.vhost.retained) == 1


# ---- Restarts --------------------------------------------------------------------------------------------------------


def test_it_survives_a_crash_and_its_time_runs_on(listening: MemoryBroker) -> None:
    left(listening, 30, is_retained=True)
    listening.commit()
    listening.advance(20)
    started = listening.crashed()
    started.advance(9.9)
    assert heard(started) == []
    started.advance(0.1)
    assert heard(started) == [b"gone"]
    assert len(started.vhost.retained) == 1


def test_one_that_fell_due_meanwhile_is_published_at_the_start(listening: MemoryBroker) -> None:
    left(listening, 30)
    listening.commit()
    listening.clock.advance(0)
    later = listening.stopped()
    later.clock.advance(1000)
    started = later.crashed()
    started.advance(0)
    assert heard(started) == [b"gone"]


def test_it_is_published_once_whenever_the_broker_dies(listening: MemoryBroker) -> None:
    left(listening, 30)
    listening.commit()
    listening.advance(30)
    before_the_commit = listening.crashed()
    before_the_commit.advance(0)
    assert heard(before_the_commit) == [b"gone"]
    listening.commit()
    after_the_commit = listening.crashed()
    after_the_commit.advance(1000)
    assert heard(after_the_commit) == [b"gone"]


def test_a_cancelled_one_stays_cancelled(listening: MemoryBroker) -> None:
    left(listening, 30)
    listening.commit()
    listening.vhost.wills.cancel("sensor")
    listening.commit()
    started = listening.crashed()
    started.advance(1000)
    assert heard(started) == []


def test_they_go_with_their_virtual_host(broker: MemoryBroker) -> None:
    vhost = broker.kernel.declare_vhost("other")
    vhost.wills.leave("sensor", Message("amq.topic", "last", header_of(), b"gone"), True, 30)
    broker.kernel.delete_vhost("other")
    broker.advance(1000)
    broker.commit()
    assert durable_entities(broker) == []
