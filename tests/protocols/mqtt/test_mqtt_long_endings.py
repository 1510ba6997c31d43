"""A connection with very many unacknowledged deliveries ends in slices; the next one of its client waits for that."""

from itertools import pairwise

import pytest

from gateway.kernel.journal.disk_backlog import FILLING_LIMIT
from gateway.kernel.messages.message import Message
from gateway.testing.broker import header_of
from tests.clocks import TurnClock
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import receive_maximum

COUNT = 2000
FOR_AN_HOUR = 3600
OWN_QUEUE = "mqtt-subscription-appqos1"

#: Deliveries that are requeued in a turn of five readings of the clock of a millisecond each.
MOST_IN_A_TURN = 6 * 64


@pytest.fixture
def clock() -> TurnClock:
    return TurnClock()


@pytest.fixture
def gateway(clock: TurnClock) -> Gateway:
    return Gateway(clock=clock, prefetch=COUNT, max_inflight=2 * COUNT)


def calling(gateway: Gateway, *, is_clean: bool = False, expiry: int = FOR_AN_HOUR) -> Client:
    """Return a client that has sent its CONNECT; ``backlog`` is what it received."""
    client = gateway.new_client()
    properties = receive_maximum(COUNT)
    client.backlog = client.connect("app", is_clean=is_clean, expiry=expiry, properties=properties)
    return client


def with_deliveries(gateway: Gateway, filter: str = "t", qos: int = 1, expiry: int = FOR_AN_HOUR) -> Client:
    """Return a client with unacknowledged deliveries."""
    app = calling(gateway, expiry=expiry)
    app.subscribe(filter, qos)
    publish(gateway, [b"%d" % number for number in range(1, COUNT + 1)], qos)
    assert len(app.receive()) == COUNT
    return app


def publish(gateway: Gateway, bodies: list[bytes], qos: int = 1) -> None:
    """Publish messages, which takes no time."""
    clock, sensor = gateway.fake_clock, gateway.client("sensor")
    assert isinstance(clock, TurnClock)
    clock.is_ticking = False
    for number, body in enumerate(bodies, 1):
        sensor.send(sensor.write.publish("t", body, qos=qos, id=number))
        gateway.end_turn()
    sensor.lose()
    gateway.settle()
    clock.is_ticking = True


def run(gateway: Gateway) -> None:
    """Run all turns."""
    clock = gateway.fake_clock
    assert isinstance(clock, TurnClock)
    gateway.settle()
    while clock.turn():
        gateway.settle()


def ready(gateway: Gateway) -> int:
    """Return how many messages wait in the client's own queue."""
    return len(gateway.vhost.queue(OWN_QUEUE))


def lines(client: Client) -> list[str]:
    """Return what a client received since its CONNECT, without the properties of the CONNACK."""
    client.backlog += client.receive()
    return [line.split(" MAXIMUM_PACKET_SIZE")[0] for line in client.backlog]


def sent(qos: int = 1) -> list[str]:
    return [f"PUBLISH q{qos} #{number} dup t '{number}'" for number in range(1, COUNT + 1)]


def test_a_turn_requeues_a_bounded_number_of_deliveries(gateway: Gateway, clock: TurnClock) -> None:
    app = with_deliveries(gateway)
    app.lose()
    counts = [0, ready(gateway)]
    while clock.turn():
        counts.append(ready(gateway))
    turns = [after - before for before, after in pairwise(counts)]
    assert counts[-1] == COUNT
    assert 0 < turns[0] <= MOST_IN_A_TURN
    assert max(turns) <= MOST_IN_A_TURN


def test_a_takeover_waits_for_the_end_and_gets_every_delivery_again(gateway: Gateway, clock: TurnClock) -> None:
    app = with_deliveries(gateway)
    again = calling(gateway)
    assert again.backlog == []
    assert 0 < ready(gateway) <= MOST_IN_A_TURN
    assert app.receive()[0].startswith("DISCONNECT")
    while not lines(again):
        assert clock.turn()
    run(gateway)
    assert lines(again) == ["CONNACK present", *sent()]
    assert not len(clock.background)


def test_a_takeover_ends_beside_publishers_that_are_faster_than_the_disk(gateway: Gateway, clock: TurnClock) -> None:
    with_deliveries(gateway)
    gateway.vhost.declare_queue("flood", is_durable=True)
    again = calling(gateway)
    for _ in range(50):
        message = Message("", "flood", header_of(is_persistent=True), bytes(FILLING_LIMIT))
        gateway.vhost.publish(gateway.vhost.exchange(""), message)
        gateway.end_turn()
        assert gateway.broker.journal.disk_backlog.is_filling
        clock.turn(1)
        if lines(again):
            break
    assert lines(again), "no answer while they publish"
    run(gateway)
    assert lines(again) == ["CONNACK present", *sent()]


@pytest.mark.parametrize("filter", ["t", "$share/g/t"])
def test_exactly_once_deliveries_keep_their_identifiers(gateway: Gateway, filter: str) -> None:
    app = with_deliveries(gateway, filter, qos=2)
    app.lose()
    again = calling(gateway)
    assert again.backlog == []
    run(gateway)
    assert lines(again) == ["CONNACK present", *sent(2)]
    assert again.pubrec(7) == ["PUBREL #7"]
    assert again.pubcomp(7) == []


def test_of_two_clients_that_wait_the_later_one_gets_the_session(gateway: Gateway) -> None:
    with_deliveries(gateway)
    second, third = calling(gateway), calling(gateway)
    run(gateway)
    assert lines(second)[0] == "CONNACK present"
    assert lines(second)[-2].startswith("DISCONNECT")
    assert lines(third) == ["CONNACK present", *sent()]


def test_a_client_that_gives_up_waiting_takes_nothing(gateway: Gateway) -> None:
    with_deliveries(gateway).lose()
    calling(gateway).lose()
    run(gateway)
    assert ready(gateway) == COUNT
    session = gateway.vhost.sessions.get("app")
    assert session is not None
    assert session.holder is None


def test_a_message_of_the_meantime_comes_last(gateway: Gateway) -> None:
    with_deliveries(gateway).lose()
    publish(gateway, [b"late"])
    again = calling(gateway)
    run(gateway)
    assert lines(again) == ["CONNACK present", *sent()]
    assert again.puback(1) == [f"PUBLISH q1 #{COUNT + 1} t 'late'"]


def test_a_clean_start_meanwhile_gets_none_of_the_messages(gateway: Gateway) -> None:
    with_deliveries(gateway).lose()
    again = calling(gateway, is_clean=True)
    assert again.backlog == []
    run(gateway)
    assert lines(again) == ["CONNACK"]
    assert OWN_QUEUE not in gateway.vhost.queue_by_name
    assert "app" in {session.client_id for session in gateway.crashed().vhost.sessions}


def test_a_session_without_expiry_is_deleted_after_the_end(gateway: Gateway) -> None:
    with_deliveries(gateway, expiry=0).lose()
    assert gateway.vhost.sessions.get("app") is not None
    again = calling(gateway)
    assert again.backlog == []
    run(gateway)
    assert lines(again) == ["CONNACK"]
    assert OWN_QUEUE not in gateway.vhost.queue_by_name


def test_an_expired_time_counts_from_the_end(gateway: Gateway, clock: TurnClock) -> None:
    with_deliveries(gateway, expiry=60).lose()
    run(gateway)
    clock.turn(59)
    assert ready(gateway) == COUNT
    clock.turn(2)
    run(gateway)
    assert gateway.vhost.sessions.get("app") is None
    assert OWN_QUEUE not in gateway.vhost.queue_by_name


def test_an_operator_ends_a_session_meanwhile(gateway: Gateway) -> None:
    app = with_deliveries(gateway)
    sessions = gateway.vhost.sessions
    session = sessions.get("app")
    assert session is not None
    sessions.expel(session, "maintenance")
    assert app.receive()[0].startswith("DISCONNECT")
    assert sessions.get("app") is None
    again = calling(gateway)
    assert again.backlog == []
    run(gateway)
    assert lines(again) == ["CONNACK"]
    assert OWN_QUEUE not in gateway.vhost.queue_by_name


def test_the_other_members_of_a_group_get_the_messages_in_order_at_the_end(gateway: Gateway, clock: TurnClock) -> None:
    app = with_deliveries(gateway, "$share/g/t")
    other = gateway.client("other", is_clean=False, expiry=FOR_AN_HOUR, properties=receive_maximum(2 * COUNT))
    other.subscribe("$share/g/t", 1)
    app.lose()
    while not (received := other.receive()):
        assert clock.turn()
    run(gateway)
    received += other.receive()
    assert [line.split()[-1] for line in received] == [f"'{number}'" for number in range(1, COUNT + 1)]


def test_a_crash_meanwhile_loses_nothing(gateway: Gateway) -> None:
    with_deliveries(gateway, qos=2).lose()
    gateway.store.commit()
    restarted = gateway.crashed()
    again = calling(restarted)
    run(restarted)
    assert lines(again) == ["CONNACK present", *sent(2)]


def test_the_deletion_of_the_virtual_host_waits_for_the_end(gateway: Gateway) -> None:
    with_deliveries(gateway)
    gateway.broker.delete_vhost("/")
    run(gateway)
    assert "/" not in gateway.broker.vhost_by_name
    assert not len(gateway.fake_clock.background)
    assert "app" not in repr(list(gateway.store.reopened().recover()))


def test_a_session_whose_deliveries_cannot_be_requeued_is_closed(gateway: Gateway) -> None:
    calling(gateway)
    session = gateway.vhost.sessions.get("app")
    assert session is not None

    def failing() -> None:
        raise ValueError("it failed")

    with pytest.raises(ValueError, match="it failed"):
        gateway.vhost.sessions.close(session, (failing() for _ in range(1)))
    assert session.holder is None
    assert calling(gateway).backlog[0].startswith("CONNACK present")
