"""A session with very many unacknowledged deliveries is resumed in slices: in order, each once, as they were sent."""

import pytest

from tests.clocks import TurnClock
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import receive_maximum

COUNT = 2000
FOR_AN_HOUR = 3600

#: Messages in the turn of the CONNECT, and in a turn of five readings of the clock of a millisecond each.
FIRST, MOST_IN_A_TURN = 64, 6 * 64


@pytest.fixture
def clock() -> TurnClock:
    return TurnClock()


@pytest.fixture
def gateway(clock: TurnClock) -> Gateway:
    return Gateway(clock=clock, prefetch=COUNT, max_inflight=2 * COUNT)


def connected(gateway: Gateway, window: int = COUNT) -> Client:
    """Return a client that is connected once the end of its last connection is complete."""
    clock, client = gateway.fake_clock, gateway.new_client()
    assert isinstance(clock, TurnClock)
    received = client.connect("app", is_clean=False, expiry=FOR_AN_HOUR, properties=receive_maximum(window))
    while not received and clock.turn():
        received = client.receive()
    assert received[0].startswith("CONNACK")
    client.backlog = received[1:]
    return client


def lost(gateway: Gateway, client: Client) -> None:
    """End a connection, and run its end."""
    client.lose()
    run(gateway)


def sent(qos: int = 1, first: int = 1, *, is_resent: bool = True) -> list[str]:
    """Return the deliveries from a packet identifier on."""
    dup = " dup" if is_resent else ""
    return [f"PUBLISH q{qos} #{number}{dup} t '{number}'" for number in range(first, COUNT + 1)]


def with_deliveries(gateway: Gateway, qos: int = 1, count: int = COUNT) -> Client:
    """Return a client of a session with unacknowledged deliveries."""
    app = connected(gateway)
    app.subscribe("t", qos)
    publish(gateway, qos, [b"%d" % number for number in range(1, count + 1)])
    assert app.receive() == sent(qos, is_resent=False)[:count]
    return app


def publish(gateway: Gateway, qos: int, bodies: list[bytes]) -> None:
    """Publish messages, which takes no time."""
    clock, sensor = gateway.fake_clock, gateway.client("sensor")
    assert isinstance(clock, TurnClock)
    clock.is_ticking = False
    for number, body in enumerate(bodies, 1):
        sensor.send(sensor.write.publish("t", body, qos=qos, id=number))
        gateway.end_turn()
    run(gateway)
    sensor.lose()
    clock.is_ticking = True


def run(gateway: Gateway) -> None:
    """Run all turns."""
    clock = gateway.fake_clock
    assert isinstance(clock, TurnClock)
    gateway.settle()
    while clock.turn():
        gateway.settle()


def inflight(client: Client) -> int:
    """Return the number of unacknowledged deliveries of a connection."""
    assert client.machine.conversation is not None
    receiving = client.machine.conversation.receiving
    return 0 if receiving is None else len(receiving.inflight.deliveries)


def test_a_turn_sends_a_bounded_number_of_deliveries_again(gateway: Gateway, clock: TurnClock) -> None:
    lost(gateway, with_deliveries(gateway))
    again = connected(gateway)
    lines, turns = list(again.backlog), [len(again.backlog)]
    while clock.turn():
        received = again.receive()
        lines += received
        turns.append(len(received))
    assert lines == sent()
    assert turns[0] == FIRST
    assert 0 < max(turns) <= MOST_IN_A_TURN
    run(gateway)
    assert again.receive() == []


def test_the_second_of_two_takeovers_gets_each_delivery_once(gateway: Gateway, clock: TurnClock) -> None:
    with_deliveries(gateway)
    second = connected(gateway)
    clock.turn()
    assert FIRST < inflight(second) < COUNT
    third = connected(gateway)
    assert second.receive()[-2:][0].startswith("DISCONNECT")
    run(gateway)
    assert second.receive() == []
    assert third.backlog + third.receive() == sent()
    assert inflight(third) == COUNT


def test_acknowledgements_during_the_resumption_end_their_deliveries(gateway: Gateway) -> None:
    with_deliveries(gateway)
    again = connected(gateway)
    for number in range(1, FIRST + 1):
        again.send(again.write.puback(number))
    run(gateway)
    assert again.backlog + again.receive() == sent()
    assert inflight(again) == COUNT - FIRST
    again.lose()
    third = connected(gateway)
    run(gateway)
    assert third.backlog + third.receive() == sent(first=FIRST + 1)


def test_a_message_of_the_meantime_comes_after_those_of_the_last_connection(gateway: Gateway) -> None:
    with_deliveries(gateway, count=COUNT - 1)
    again = connected(gateway)
    sensor = gateway.client("sensor")
    sensor.publish("t", b"%d" % COUNT, qos=1, id=1)
    run(gateway)
    lines = again.backlog + again.receive()
    assert lines == [*sent()[:-1], f"PUBLISH q1 #{COUNT} t '{COUNT}'"]


def test_the_receive_maximum_of_the_new_connection_holds(gateway: Gateway) -> None:
    with_deliveries(gateway)
    again = connected(gateway, window=500)
    run(gateway)
    assert again.backlog + again.receive() == sent()[:500]
    assert again.puback(1) == sent()[500:501]


def test_exactly_once_deliveries_keep_their_state(gateway: Gateway, clock: TurnClock) -> None:
    app = with_deliveries(gateway, qos=2)
    for number in range(1, 101):
        app.send(app.write.pubrec(number))
    run(gateway)
    app.receive()
    releases = [f"PUBREL #{number}" for number in range(1, 101)]
    second = connected(gateway)
    clock.turn()
    third = connected(gateway)
    assert second.backlog[:100] == releases
    run(gateway)
    assert third.backlog + third.receive() == releases + sent(2, first=101)
    assert third.pubcomp(1) == []
    assert third.pubrec(101) == ["PUBREL #101"]


def test_exactly_once_deliveries_of_a_group_are_sent_again_in_slices(gateway: Gateway, clock: TurnClock) -> None:
    app = connected(gateway)
    app.subscribe("$share/g/t", 2)
    publish(gateway, 2, [b"%d" % number for number in range(1, COUNT + 1)])
    assert len(app.receive()) == COUNT
    lost(gateway, app)
    again = connected(gateway)
    lines, turns = list(again.backlog), [len(again.backlog)]
    while clock.turn():
        received = again.receive()
        lines += received
        turns.append(len(received))
    assert lines == sent(2)
    assert turns[0] == FIRST
    assert max(turns) <= MOST_IN_A_TURN


def test_a_full_outbox_interrupts_the_resumption(gateway: Gateway, clock: TurnClock) -> None:
    app = connected(gateway)
    app.subscribe("t", 1)
    publish(gateway, 1, [bytes(10_000)] * 200)
    assert len(app.receive()) == 200
    again = connected(gateway)
    again.is_reading = False
    run(gateway)
    assert 0 < inflight(again) < 200
    assert not len(gateway.fake_clock.background)
    again.is_reading = True
    run(gateway)
    lines = again.backlog + again.receive()
    assert [line.split()[2] for line in lines] == [f"#{number}" for number in range(1, 201)]


def test_the_identifier_of_a_message_that_has_left_the_queue_is_released_at_the_end(gateway: Gateway) -> None:
    app = with_deliveries(gateway, qos=2)
    app.lose()
    queue = gateway.vhost.queue("mqtt-subscription-appqos1")
    assert app.machine.conversation is None
    session = gateway.vhost.sessions.get("app")
    assert session is not None
    session.qos2_state.remember(1 << 40, COUNT + 1, 2)  # its message has expired
    again = connected(gateway)
    run(gateway)
    assert again.backlog + again.receive() == [*sent(2), f"PUBREL #{COUNT + 1}"]
    assert len(queue) == 0


def test_a_session_with_few_deliveries_is_resumed_in_the_turn_of_its_connect(gateway: Gateway) -> None:
    with_deliveries(gateway, count=FIRST)
    again = connected(gateway)
    assert again.backlog == sent()[:FIRST]
    assert not len(gateway.fake_clock.background)


def test_a_connection_that_ends_during_its_resumption_leaves_no_job(gateway: Gateway, clock: TurnClock) -> None:
    with_deliveries(gateway)
    again = connected(gateway)
    clock.turn()
    assert len(clock.background) == 1
    again.lose()
    run(gateway)
    assert not len(clock.background)
    assert len(gateway.vhost.queue("mqtt-subscription-appqos1")) == COUNT
