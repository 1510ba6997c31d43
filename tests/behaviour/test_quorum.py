"""Quorum queues on one node, and counted tries (R75, R113, R141)."""

import pytest
from pamqp import commands

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from tests.behaviour.edges import AmqpEdge, Stage

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


@pytest.mark.parametrize(("arguments", "properties", "words"), REFUSED)
def test_r141_invalid_declarations_of_a_quorum_queue_are_refused(
    stage: Stage, arguments: dict[str, Value], properties: dict[str, bool], words: str
) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        stage.vhost.declare_queue("q", arguments={**QUORUM, **arguments}, **properties)
    assert str(refusal.value) == words


def test_r141_every_message_survives(stage: Stage) -> None:
    stage.queue("q", QUORUM)
    stage.publish(b"transient")
    stage.restart()
    assert stage.bodies() == [b"transient"]


def test_r113_a_message_can_be_requeued_twenty_times(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {**QUORUM, **TO_DEAD})
    stage.publish(b"m")
    for tries in range(21):
        assert stage.requeue().headers.get("x-delivery-count", 0) == tries
    assert [letter.died for letter in stage.drain("dead")] == [[("q", "delivery_limit", 1)]]
    assert stage.ready() == 0


@pytest.mark.parametrize(
    ("argument", "policy", "tries"),
    [
        pytest.param(2, None, 2, id="the argument"),
        pytest.param(None, 3, 3, id="the policy"),
        pytest.param(2, 5, 2, id="the smaller"),
        pytest.param(5, 2, 2, id="the smaller, which the policy says"),
        pytest.param(-1, 2, 2, id="R140: no limit gives way to one"),
    ],
)
def test_r113_the_limit_is_set_by_argument_or_policy(
    stage: Stage, argument: int | None, policy: int | None, tries: int
) -> None:
    stage.queue("q", QUORUM if argument is None else {**QUORUM, "x-delivery-limit": argument})
    if policy is not None:
        stage.policy({"delivery-limit": policy})
    stage.publish(b"m")
    for _ in range(tries + 1):
        stage.requeue()
    assert stage.ready() == 0


def test_r113_without_limit_tries_are_only_counted(stage: Stage) -> None:
    stage.queue("q", {**QUORUM, "x-delivery-limit": -1})
    stage.publish(b"m")
    for _ in range(50):
        stage.requeue()
    assert stage.get().headers["x-delivery-count"] == 50


def test_r113_a_classic_queue_counts_deliveries_if_configured(stage: Stage) -> None:
    stage.queue("dead")
    stage.queue("q", {**TO_DEAD, "x-delivery-limit": 1})
    stage.publish(b"m")
    assert "x-delivery-count" not in stage.requeue().headers
    assert stage.requeue().headers["x-delivery-count"] == 1
    (letter,) = stage.drain("dead")
    assert letter.died == [("q", "delivery_limit", 1)]
    assert "x-delivery-count" not in letter.headers


def test_r113_tries_are_counted_across_a_restart(stage: Stage) -> None:
    stage.queue("q", QUORUM)
    stage.publish(b"m")
    stage.requeue()
    stage.restart()
    received = stage.get()
    assert (received.headers["x-delivery-count"], received.redelivered) == (1, True)


def test_r113_consumers_see_the_count_too(stage: Stage) -> None:
    stage.queue("q", QUORUM)
    stage.publish(b"m", headers={"k": "v"})
    stage.client.consume("q", prefetch=1)
    (first,) = stage.client.received()
    stage.client.settle(first, DeliveryOutcome.REQUEUED)
    (second,) = stage.client.received()
    assert (first.headers, second.headers) == ({"k": "v"}, {"k": "v", "x-delivery-count": 1})


def test_r75_a_quorum_queue_drops_its_head_where_others_would_dead_letter_the_newest(stage: Stage) -> None:
    stage.queue("q", {**QUORUM, "x-max-length": 1, "x-overflow": "reject-publish-dlx"})
    assert stage.publish(b"a", b"b") == [True, True]
    assert stage.bodies() == [b"b"]


def test_r141_global_prefetch_is_not_supported() -> None:
    stage = Stage(AmqpEdge)
    stage.queue("q", QUORUM)
    peer = stage.gateway.peer()
    peer.send(commands.Basic.Qos(0, 5, True), commands.Basic.Consume(0, "q"))
    assert peer.hear() == [
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
    stage: Stage, published: list[tuple[bytes, int]], received: bytes, restarts: bool
) -> None:
    stage.queue("q", QUORUM)
    for body, priority in published:
        stage.publish(body, priority=priority)
    if restarts:
        stage.restart()
    assert b"".join(stage.bodies()) == received
    assert stage.ready() == 0


def test_a_requeued_message_of_a_quorum_queue_keeps_its_priority_level(stage: Stage) -> None:
    stage.queue("q", QUORUM)
    stage.publish(b"n", priority=0)
    stage.publish(b"h", priority=6)
    assert stage.requeue().body == b"h"
    assert stage.bodies() == [b"h", b"n"]


def test_a_long_quorum_queue_with_both_levels_loses_nothing(stage: Stage) -> None:
    queue = stage.queue("q", QUORUM)
    for number in range(6000):
        stage.publish(b"%d" % number, priority=9 * (number % 2))
    assert len(queue) == 6000
    bodies = [int(body) for body in stage.bodies()]
    assert sorted(bodies) == list(range(6000))
    assert [body for body in bodies if body % 2] == list(range(1, 6000, 2))
    assert [body for body in bodies if not body % 2] == list(range(0, 6000, 2))
