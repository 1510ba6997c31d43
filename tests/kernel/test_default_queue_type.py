"""What a queue becomes that is declared without a type: as its virtual host says, else as the node does."""

from typing import Any

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker


def quorum_by_default() -> MemoryBroker:
    broker = MemoryBroker()
    broker.kernel.describe_vhost("/", default_queue_type="quorum")
    return broker


def test_a_durable_queue_without_a_type_gets_the_default() -> None:
    broker = quorum_by_default()
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments={"x-max-length": 5})
    assert queue.arguments == {"x-max-length": 5, "x-queue-type": "quorum"}
    assert queue.stores_all


def test_a_durable_queue_may_be_a_stream_by_default() -> None:
    broker = MemoryBroker(default_queue_type="stream")
    assert isinstance(broker.vhost.declare_queue("s", is_durable=True), Stream)
    assert not isinstance(broker.vhost.declare_queue("q"), Stream)
    with pytest.raises(PreconditionFailed, match=r"'x-max-length' .* of queue type rabbit_stream_queue"):
        broker.vhost.declare_queue("t", is_durable=True, arguments={"x-max-length": 3})


OTHERS: list[Any] = [
    pytest.param({"is_durable": False}, id="transient"),
    pytest.param({"is_durable": True, "owner": object()}, id="exclusive"),
    pytest.param({"is_durable": True, "is_auto_delete": True}, id="auto-delete"),
    pytest.param({"is_durable": True, "arguments": {"x-queue-type": "classic"}}, id="says classic"),
]


@pytest.mark.parametrize("asked", OTHERS)
def test_one_that_cannot_be_a_quorum_queue_or_says_otherwise_stays_classic(asked: dict[str, Any]) -> None:
    queue = quorum_by_default().vhost.declare_queue("q", **asked)
    assert queue.arguments.get("x-queue-type", "classic") == "classic"


@pytest.mark.parametrize("asked", OTHERS)
def test_it_can_be_declared_again_in_the_same_words(asked: dict[str, Any]) -> None:
    vhost = quorum_by_default().vhost
    assert vhost.declare_queue("q", **asked) is vhost.declare_queue("q", **asked)


def test_no_type_and_the_default_type_mean_the_same() -> None:
    vhost = quorum_by_default().vhost
    queue = vhost.declare_queue("q", is_durable=True)
    assert vhost.declare_queue("q", is_durable=True) is queue
    assert vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "quorum"}) is queue


def test_another_type_than_the_default_is_refused() -> None:
    vhost = quorum_by_default().vhost
    vhost.declare_queue("q", is_durable=True)
    with pytest.raises(PreconditionFailed, match=r"inequivalent arg 'x-queue-type' .* received 'classic' but current"):
        vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "classic"})


def test_an_argument_that_the_default_type_lacks_is_refused() -> None:
    with pytest.raises(PreconditionFailed, match=r"'x-max-priority' .* of queue type rabbit_quorum_queue"):
        quorum_by_default().vhost.declare_queue("q", is_durable=True, arguments={"x-max-priority": 3})


def test_a_new_default_leaves_the_queues_there_are_and_must_then_be_contradicted() -> None:
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True)
    broker.kernel.describe_vhost("/", default_queue_type="quorum")
    assert queue.arguments == {}
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-queue-type'"):
        broker.vhost.declare_queue("q", is_durable=True)
    assert broker.vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "classic"}) is queue


def test_the_default_and_what_it_made_survive_a_restart() -> None:
    broker = quorum_by_default()
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    restarted = broker.crashed().vhost
    assert restarted.queue("q").arguments == {"x-queue-type": "quorum"}
    assert restarted.declare_queue("r", is_durable=True).stores_all


def test_the_node_has_a_default_for_virtual_hosts_that_have_none() -> None:
    broker = MemoryBroker(default_queue_type="quorum")
    shop = broker.kernel.declare_vhost("shop", default_queue_type="classic")
    assert broker.vhost.declare_queue("q", is_durable=True).stores_all
    assert not shop.declare_queue("q", is_durable=True).stores_all
    assert (broker.vhost.queues.default_type, shop.queues.default_type) == ("quorum", "classic")


def test_there_has_to_be_such_a_type() -> None:
    broker = MemoryBroker()
    with pytest.raises(PreconditionFailed, match="unsupported default queue type 'ring'"):
        broker.kernel.describe_vhost("/", default_queue_type="ring")
    with pytest.raises(PreconditionFailed, match="unsupported default queue type 'x'"):
        broker.kernel.declare_vhost("shop", default_queue_type="x")
    assert set(broker.kernel.vhost_by_name) == {"/"}
    assert broker.vhost.record.default_queue_type == ""
