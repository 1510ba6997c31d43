"""Quorum queues on one node, and delivery counts (R75, R113, R141)."""

import pytest
from pamqp import commands

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.behaviour.scenario import AmqpClient, Scenario

QUORUM: dict[str, Value] = {"x-queue-type": "quorum"}
TO_DEAD: dict[str, Value] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}

REFUSED = [
    pytest.param(
        {}, {"is_durable": False}, "invalid property 'non-durable' for queue 'q' in vhost '/'", id="transient"
    ),
    pytest.param(
        {},
        {"is_durable": True, "owner": "me"},
        "invalid property 'exclusive-owner' for queue 'q' in vhost '/'",
        id="exclusive",
    ),
    pytest.param(
        {},
        {"is_durable": True, "is_auto_delete": True},
        "invalid property 'auto-delete' for queue 'q' in vhost '/'",
        id="auto-delete",
    ),
    pytest.param(
        {"x-max-priority": 3},
        {"is_durable": True},
        "invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue",
        id="priorities",
    ),
    pytest.param(
        {"x-queue-mode": "lazy"},
        {"is_durable": True},
        "invalid arg 'x-queue-mode' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue",
        id="mode",
    ),
    pytest.param(
        {"x-dead-letter-strategy": "x"},
        {"is_durable": True},
        "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/': invalid_dlx_strategy",
        id="strategy",
    ),
    pytest.param(
        {"x-queue-leader-locator": "x"},
        {"is_durable": True},
        "invalid arg 'x-queue-leader-locator' for queue 'q' in vhost '/': invalid_queue_locator_arg",
        id="locator",
    ),
    pytest.param(
        {"x-quorum-initial-group-size": 0},
        {"is_durable": True},
        "invalid arg 'x-quorum-initial-group-size' for queue 'q' in vhost '/': {value_zero,0}",
        id="group size",
    ),
]


@pytest.mark.parametrize(("arguments", "properties", "error"), REFUSED)
def test_r141_invalid_declarations_of_a_quorum_queue_are_refused(
    scenario: Scenario, arguments: dict[str, Value], properties: dict[str, bool], error: str
) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        scenario.vhost.declare_queue("q", arguments={**QUORUM, **arguments}, **properties)
    assert str(refusal.value) == error


def test_r141_every_message_survives(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM)
    scenario.publish(b"transient")
    scenario.restart()
    assert scenario.bodies() == [b"transient"]


def test_r113_a_message_can_be_requeued_twenty_times(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {**QUORUM, **TO_DEAD})
    scenario.publish(b"m")
    for tries in range(21):
        assert scenario.requeue().headers.get("x-delivery-count", 0) == tries
    assert [letter.died for letter in scenario.drain("dead")] == [[("q", "delivery_limit", 1)]]
    assert scenario.ready() == 0


@pytest.mark.parametrize(
    ("argument", "policy", "tries"),
    [
        pytest.param(2, None, 2, id="the argument"),
        pytest.param(None, 3, 3, id="the policy"),
        pytest.param(2, 5, 2, id="the smaller"),
        pytest.param(5, 2, 2, id="the smaller, from the policy"),
        pytest.param(-1, 2, 2, id="R140: a limit replaces no limit"),
    ],
)
def test_r113_the_limit_is_set_by_argument_or_policy(
    scenario: Scenario, argument: int | None, policy: int | None, tries: int
) -> None:
    scenario.queue("q", QUORUM if argument is None else {**QUORUM, "x-delivery-limit": argument})
    if policy is not None:
        scenario.policy({"delivery-limit": policy})
    scenario.publish(b"m")
    for _ in range(tries + 1):
        scenario.requeue()
    assert scenario.ready() == 0


def test_r113_without_limit_tries_are_only_counted(scenario: Scenario) -> None:
    scenario.queue("q", {**QUORUM, "x-delivery-limit": -1})
    scenario.publish(b"m")
    for _ in range(50):
        scenario.requeue()
    assert scenario.get().headers["x-delivery-count"] == 50


def test_r113_a_classic_queue_counts_deliveries_if_configured(scenario: Scenario) -> None:
    scenario.queue("dead")
    scenario.queue("q", {**TO_DEAD, "x-delivery-limit": 1})
    scenario.publish(b"m")
    assert "x-delivery-count" not in scenario.requeue().headers
    assert scenario.requeue().headers["x-delivery-count"] == 1
    (letter,) = scenario.drain("dead")
    assert letter.died == [("q", "delivery_limit", 1)]
    assert "x-delivery-count" not in letter.headers


def test_r113_tries_are_counted_across_a_restart(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM)
    scenario.publish(b"m")
    scenario.requeue()
    scenario.restart()
    received = scenario.get()
    assert (received.headers["x-delivery-count"], received.redelivered) == (1, True)


def test_r113_consumers_see_the_count_too(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM)
    scenario.publish(b"m", headers={"k": "v"})
    scenario.client.consume("q", prefetch=1)
    (first,) = scenario.client.received()
    scenario.client.settle(first, DeliveryOutcome.REQUEUED)
    (second,) = scenario.client.received()
    assert (first.headers, second.headers) == ({"k": "v"}, {"k": "v", "x-delivery-count": 1})


def test_r75_a_quorum_queue_drops_its_head_where_others_would_dead_letter_the_newest(scenario: Scenario) -> None:
    scenario.queue("q", {**QUORUM, "x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    assert scenario.publish(b"a", b"b") == [True, True]
    assert scenario.bodies() == [b"b"]


def test_r141_global_prefetch_is_not_supported() -> None:
    scenario = Scenario(AmqpClient)
    scenario.queue("q", QUORUM)
    peer = scenario.gateway.peer()
    peer.send(commands.Basic.Qos(0, 5, True), commands.Basic.Consume(0, "q"))
    assert peer.receive() == [
        "Basic.QosOk()",
        "Connection.Close 540 NOT_IMPLEMENTED - queue 'q' in vhost '/' does not support global qos (60,20)",
    ]


LEVELS = [
    pytest.param([(b"n", 0)] * 4 + [(b"h", 5)] * 4, b"hhnhhnnn", id="two of the high level for one of the normal one"),
    pytest.param([(b"h", 9)] * 4 + [(b"n", 4)] * 4, b"hhhhnnnn", id="older ones of the high level first"),
    pytest.param([(b"1", 0), (b"2", 4), (b"3", 1)], b"123", id="a priority up to 4 is the normal one"),
    pytest.param([(b"1", 5), (b"2", 255), (b"3", 7)], b"123", id="all above are one level"),
    pytest.param([(b"n", 0)] * 7 + [(b"h", 5)], b"hnnnnnnn", id="one of the high level overtakes"),
]


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize(("published", "received"), LEVELS)
def test_a_quorum_queue_serves_two_levels_of_priority(
    scenario: Scenario, published: list[tuple[bytes, int]], received: bytes, restarts: bool
) -> None:
    scenario.queue("q", QUORUM)
    for body, priority in published:
        scenario.publish(body, priority=priority)
    if restarts:
        scenario.restart()
    assert b"".join(scenario.bodies()) == received
    assert scenario.ready() == 0


def test_a_requeued_message_of_a_quorum_queue_keeps_its_priority_level(scenario: Scenario) -> None:
    scenario.queue("q", QUORUM)
    scenario.publish(b"n", priority=0)
    scenario.publish(b"h", priority=6)
    assert scenario.requeue().body == b"h"
    assert scenario.bodies() == [b"h", b"n"]


def test_a_long_quorum_queue_with_both_levels_loses_nothing(scenario: Scenario) -> None:
    queue = scenario.queue("q", QUORUM)
    for number in range(6000):
        scenario.publish(b"%d" % number, priority=9 * (number % 2))
    assert len(queue) == 6000
    bodies = [int(body) for body in scenario.bodies()]
    assert sorted(bodies) == list(range(6000))
    assert [body for body in bodies if body % 2] == list(range(1, 6000, 2))
    assert [body for body in bodies if not body % 2] == list(range(0, 6000, 2))
