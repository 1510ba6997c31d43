"""Counters of sessions (existing, connected, expired), and sessions ended by an operator."""

import pytest

from gateway.kernel.sessions.sessions import Sessions
from gateway.testing import MemoryBroker
from tests.kernel.session_clients import Client, publish_to_topic


@pytest.fixture
def sessions(broker: MemoryBroker) -> Sessions:
    return broker.vhost.sessions


def counts(sessions: Sessions) -> tuple[int, int, int]:
    return sessions.connected, sessions.most_connected, sessions.expired


def test_connected_sessions_and_their_maximum_are_counted(broker: MemoryBroker, sessions: Sessions) -> None:
    ann, bob = Client(broker, "ann"), Client(broker, "bob")
    ann.connect()
    bob.connect(expiry_s=0)
    assert counts(sessions) == (2, 2, 0)
    ann.leave()
    bob.leave()
    assert counts(sessions) == (0, 2, 0)


def test_statistics_read_only_sessions_that_subscribed(broker: MemoryBroker, sessions: Sessions) -> None:
    silent, subscribed = Client(broker, "silent"), Client(broker, "subscribed")
    silent.connect()
    subscribed.connect()
    assert sessions.subscribers() == ()
    subscribed.subscribe("t")
    subscribed.unsubscribe("t")  # its queue remains, and may have messages
    subscribed.leave()
    assert sessions.subscribers() == (subscribed.session,)
    subscribed.connect(is_clean=True)
    assert sessions.subscribers() == ()


def test_statistics_read_the_queues_of_a_session_without_subscriptions_after_a_crash(broker: MemoryBroker) -> None:
    client = Client(broker)
    client.connect()
    queue = client.subscribe("t")
    publish_to_topic(broker, "t")
    client.unsubscribe("t")
    broker.commit()
    (restored,) = broker.crashed().vhost.sessions.subscribers()
    assert [(each.name, len(each)) for each in restored.own_queues()] == [(queue.name, 1)]


def test_a_takeover_counts_as_one_client(broker: MemoryBroker, sessions: Sessions) -> None:
    client = Client(broker)
    client.connect()
    Client(broker).connect()
    assert counts(sessions) == (1, 1, 0)


def test_only_sessions_of_absent_clients_count_as_expired(broker: MemoryBroker, sessions: Sessions) -> None:
    stays, returns = Client(broker, "stays"), Client(broker, "returns")
    for client in (stays, returns):
        client.connect(expiry_s=60)
        client.leave()
    broker.clock.advance(30)
    returns.connect(is_clean=True)
    broker.clock.advance(60)
    assert counts(sessions) == (1, 1, 1)


def test_shared_and_broker_topic_subscriptions_are_counted(broker: MemoryBroker) -> None:
    client = Client(broker)
    client.connect()
    for filter in ("t", "$SYS/#", "$SYS/#", "$SYS/broker/uptime", "$share/g/t", "$share/g/$SYS/#"):
        client.subscribe(filter)
    subscriptions = client.session.subscriptions
    assert (len(subscriptions), subscriptions.shared, subscriptions.to_broker) == (5, 2, 2)
    for filter in ("$SYS/#", "$share/g/t", "t"):
        client.unsubscribe(filter)
    assert (len(subscriptions), subscriptions.shared, subscriptions.to_broker) == (2, 1, 1)


def test_messages_dropped_by_the_queues_of_a_session_are_counted_when_it_ends(
    broker: MemoryBroker, sessions: Sessions
) -> None:
    sessions.limits = {0: {}, 1: {"x-max-length": 1}}
    client = Client(broker)
    client.connect(expiry_s=60)
    queue = client.subscribe("t")
    for _ in range(3):
        publish_to_topic(broker, "t")
    assert (queue.counters.dropped, sessions.dropped) == (2, 0)
    client.leave()
    broker.clock.advance(60)
    assert sessions.dropped == 2


@pytest.mark.parametrize("expiry_s", [0, 60])
def test_an_operator_can_end_the_session_of_a_connected_client(
    broker: MemoryBroker, sessions: Sessions, expiry_s: int
) -> None:
    client = Client(broker)
    client.connect(expiry_s=expiry_s)
    client.subscribe("t")
    sessions.expel(client.session, "maintenance")
    assert (len(sessions), client.is_connected, list(broker.vhost.queue_by_name)) == (0, False, [])


def test_an_operator_can_end_the_session_of_a_disconnected_client(broker: MemoryBroker, sessions: Sessions) -> None:
    client = Client(broker)
    client.connect()
    client.subscribe("t")
    client.leave()
    sessions.expel(client.session, "maintenance")
    assert (len(sessions), list(broker.vhost.queue_by_name)) == (0, [])
