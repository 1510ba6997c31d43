"""Consumers that do not settle in time lose their channel, and what they hold goes to others."""

import pytest
from pamqp import commands

from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.ack_timeout import CONSUMER_TIMEOUT_MS
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import AmqpEdge, Stage


def pass_time(stage: Stage, client: AmqpEdge, milliseconds: int, step_ms: int = 500) -> None:
    """Let time pass as it does for a connection: it is told twice a second."""
    for _ in range(milliseconds // step_ms):
        stage.advance(step_ms)
        client.peer.machine.mind_consumers()
    stage.gateway.settle()


def closes(client: AmqpEdge) -> list[str]:
    answers = [heard.method for heard in client.peer.listen()]
    return [
        f"{answer.reply_code} {answer.reply_text}" for answer in answers if isinstance(answer, commands.Channel.Close)
    ]


def timed_out(limit_ms: int) -> str:
    return (
        "406 PRECONDITION_FAILED - delivery acknowledgement on channel 2 timed out. "
        f"Timeout value used: {limit_ms} ms. "
        "This timeout value can be configured, see consumers doc guide to learn more"
    )


LIMITS = [
    #            argument  policy  operator  limit
    pytest.param(None, None, None, CONSUMER_TIMEOUT_MS, id="nobody says anything"),
    pytest.param(2000, None, None, 2000, id="the argument"),
    pytest.param(None, 3000, None, 3000, id="the policy"),
    pytest.param(2000, 3000, None, 2000, id="argument and policy: the shorter one"),
    pytest.param(4000, 3000, None, 3000, id="policy and argument: the shorter one"),
    pytest.param(4000, 3000, 2500, 2500, id="the operator policy too"),
    pytest.param(CONSUMER_TIMEOUT_MS * 2, None, None, CONSUMER_TIMEOUT_MS * 2, id="longer than usual"),
]


@pytest.mark.parametrize(("argument", "policy", "operator", "limit_ms"), LIMITS)
def test_the_channel_is_closed_and_its_deliveries_are_requeued(
    stage: Stage, argument: int | None, policy: int | None, operator: int | None, limit_ms: int
) -> None:
    arguments: dict[str, Value] = {} if argument is None else {"x-consumer-timeout": argument}
    stage.queue("q", arguments)
    if policy is not None:
        stage.policy({"consumer-timeout": policy})
    if operator is not None:
        stage.policy({"consumer-timeout": operator}, is_operator=True)
    client = AmqpEdge(stage.gateway)
    client.consume("q")
    stage.publish(b"1", b"2")
    client.peer.machine.mind_consumers()
    pass_time(stage, client, limit_ms - 1000, step_ms=limit_ms - 1000)
    client.received()
    assert (closes(client), stage.ready()) == ([], 0)
    pass_time(stage, client, 1000)
    assert closes(client) == [timed_out(limit_ms)]
    assert [received.redelivered for received in stage.drain()] == [True, True]


def test_a_consumer_that_settles_in_time_is_never_closed(stage: Stage) -> None:
    stage.queue("q", {"x-consumer-timeout": 2000})
    client = AmqpEdge(stage.gateway)
    client.consume("q")
    for number in range(10):
        stage.publish(b"%d" % number)
        pass_time(stage, client, 1000)
        for received in client.received():
            client.settle(received, DeliveryOutcome.ACCEPTED)
    assert closes(client) == []


def test_one_old_delivery_among_many_recent_ones_is_enough(stage: Stage) -> None:
    stage.queue("q", {"x-consumer-timeout": 3000})
    client = AmqpEdge(stage.gateway)
    client.consume("q")
    stage.publish(b"stuck")
    (stuck,) = client.received()
    for _ in range(5):
        pass_time(stage, client, 500)
        stage.publish(b"next")
        for received in client.received():
            client.settle(received, DeliveryOutcome.ACCEPTED)
    assert stuck.body == b"stuck"
    pass_time(stage, client, 1000)
    assert closes(client) == [timed_out(3000)]


def test_a_message_fetched_with_get_times_out_too(stage: Stage) -> None:
    stage.queue("q", {"x-consumer-timeout": 1000})
    stage.publish(b"1")
    client = AmqpEdge(stage.gateway)
    assert client.get("q") is not None
    pass_time(stage, client, 2000)
    assert closes(client) == [timed_out(1000)]


def test_each_queue_has_its_own_timeout(stage: Stage) -> None:
    stage.queue("slow", {"x-consumer-timeout": 60_000})
    stage.queue("fast", {"x-consumer-timeout": 2000})
    client = AmqpEdge(stage.gateway)
    client.consume("slow")
    client.consume("fast")
    stage.publish(b"1", to="slow")
    stage.publish(b"2", to="fast")
    pass_time(stage, client, 5000)
    client.received()
    assert stage.ready("slow") == stage.ready("fast") == 1


def test_deliveries_without_acknowledgement_have_no_timeout(stage: Stage) -> None:
    stage.queue("q", {"x-consumer-timeout": 1000})
    client = AmqpEdge(stage.gateway)
    client.peer.send(commands.Basic.Consume(0, "q", no_ack=True), channel=2)
    stage.publish(b"1")
    pass_time(stage, client, 5000)
    assert [received.body for received in client.received()] == [b"1"]
    assert closes(client) == []


def test_the_other_channels_of_the_connection_stay_open(stage: Stage) -> None:
    stage.queue("q", {"x-consumer-timeout": 1000})
    client = AmqpEdge(stage.gateway)
    client.consume("q")
    stage.publish(b"1")
    pass_time(stage, client, 2000)
    client.received()
    assert client.publish("", "q", b"2")
