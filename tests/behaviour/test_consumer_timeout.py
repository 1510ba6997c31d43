"""Consumers that do not acknowledge in time lose their channel, and their deliveries are requeued."""

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.ack_timeout import CONSUMER_TIMEOUT_MS
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway_amqp.periodic_checks import check_consumer_timeouts
from tests.behaviour.scenario import AmqpClient, Scenario


def pass_time(scenario: Scenario, client: AmqpClient, milliseconds: int, step_ms: int = 500) -> None:
    """Advance the time; the connection checks its timeouts twice a second."""
    for _ in range(milliseconds // step_ms):
        scenario.advance(step_ms)
        check_consumer_timeouts(client.peer.machine)
    scenario.gateway.settle()


def channel_closes(client: AmqpClient) -> list[str]:
    answers = [received.method for received in client.peer.receive_frames()]
    return [
        f"{answer.reply_code} {answer.reply_text}" for answer in answers if isinstance(answer, commands.Channel.Close)
    ]


def timeout_text(limit_ms: int) -> str:
    return (
        "406 PRECONDITION_FAILED - delivery acknowledgement on channel 2 timed out. "
        f"Timeout value used: {limit_ms} ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )


LIMITS = [
    #            argument  policy  operator  limit
    pytest.param(None, None, None, CONSUMER_TIMEOUT_MS, id="default"),
    pytest.param(2000, None, None, 2000, id="the argument"),
    pytest.param(None, 3000, None, 3000, id="the policy"),
    pytest.param(2000, 3000, None, 2000, id="argument and policy: the shorter one"),
    pytest.param(4000, 3000, None, 3000, id="policy and argument: the shorter one"),
    pytest.param(4000, 3000, 2500, 2500, id="the operator policy too"),
    pytest.param(CONSUMER_TIMEOUT_MS * 2, None, None, CONSUMER_TIMEOUT_MS * 2, id="longer than usual"),
]


@pytest.mark.parametrize(("argument", "policy", "operator", "limit_ms"), LIMITS)
def test_the_channel_is_closed_and_its_deliveries_are_requeued(
    scenario: Scenario, argument: int | None, policy: int | None, operator: int | None, limit_ms: int
) -> None:
    arguments: dict[str, Value] = {} if argument is None else {"x-consumer-timeout": argument}
    scenario.queue("q", arguments)
    if policy is not None:
        scenario.policy({"consumer-timeout": policy})
    if operator is not None:
        scenario.policy({"consumer-timeout": operator}, is_operator=True)
    client = AmqpClient(scenario.gateway)
    client.consume("q")
    scenario.publish(b"1", b"2")
    check_consumer_timeouts(client.peer.machine)
    pass_time(scenario, client, limit_ms - 1000, step_ms=limit_ms - 1000)
    client.received()
    assert (channel_closes(client), scenario.ready()) == ([], 0)
    pass_time(scenario, client, 1000)
    assert channel_closes(client) == [timeout_text(limit_ms)]
    assert [received.redelivered for received in scenario.drain()] == [True, True]


def test_a_consumer_that_settles_in_time_is_never_closed(scenario: Scenario) -> None:
    scenario.queue("q", {"x-consumer-timeout": 2000})
    client = AmqpClient(scenario.gateway)
    client.consume("q")
    for number in range(10):
        scenario.publish(b"%d" % number)
        pass_time(scenario, client, 1000)
        for received in client.received():
            client.settle(received, DeliveryOutcome.ACCEPTED)
    assert channel_closes(client) == []


def test_one_old_delivery_among_many_recent_ones_is_enough(scenario: Scenario) -> None:
    scenario.queue("q", {"x-consumer-timeout": 3000})
    client = AmqpClient(scenario.gateway)
    client.consume("q")
    scenario.publish(b"stuck")
    (stuck,) = client.received()
    for _ in range(5):
        pass_time(scenario, client, 500)
        scenario.publish(b"next")
        for received in client.received():
            client.settle(received, DeliveryOutcome.ACCEPTED)
    assert stuck.body == b"stuck"
    pass_time(scenario, client, 1000)
    assert channel_closes(client) == [timeout_text(3000)]


def test_a_message_fetched_with_get_times_out_too(scenario: Scenario) -> None:
    scenario.queue("q", {"x-consumer-timeout": 1000})
    scenario.publish(b"1")
    client = AmqpClient(scenario.gateway)
    assert client.get("q") is not None
    pass_time(scenario, client, 2000)
    assert channel_closes(client) == [timeout_text(1000)]


def test_each_queue_has_its_own_timeout(scenario: Scenario) -> None:
    scenario.queue("slow", {"x-consumer-timeout": 60_000})
    scenario.queue("fast", {"x-consumer-timeout": 2000})
    client = AmqpClient(scenario.gateway)
    client.consume("slow")
    client.consume("fast")
    scenario.publish(b"1", to="slow")
    scenario.publish(b"2", to="fast")
    pass_time(scenario, client, 5000)
    client.received()
    assert scenario.ready("slow") == scenario.ready("fast") == 1


def test_deliveries_without_acknowledgement_have_no_timeout(scenario: Scenario) -> None:
    scenario.queue("q", {"x-consumer-timeout": 1000})
    client = AmqpClient(scenario.gateway)
    client.peer.send(commands.Basic.Consume(0, "q", no_ack=True), channel=2)
    scenario.publish(b"1")
    pass_time(scenario, client, 5000)
    assert [received.body for received in client.received()] == [b"1"]
    assert channel_closes(client) == []


def test_the_other_channels_of_the_connection_stay_open(scenario: Scenario) -> None:
    scenario.queue("q", {"x-consumer-timeout": 1000})
    client = AmqpClient(scenario.gateway)
    client.consume("q")
    scenario.publish(b"1")
    pass_time(scenario, client, 2000)
    client.received()
    assert client.publish("", "q", b"2")
