"""The type of a queue declared without one: the virtual host's default, else the node's."""

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
    pytest.param({"is_durable": True, "arguments": {"x-queue-type": "classic"}}, id="declared classic"),
]


@pytest.mark.parametrize("properties", OTHERS)
def test_a_queue_that_cannot_be_quorum_or_sets_another_type_stays_classic(properties: dict[str, Any]) -> None:
    queue = quorum_by_default().vhost.declare_queue("q", **properties)
    assert queue.arguments.get("x-queue-type", "classic") == "classic"


@pytest.mark.parametrize("properties", OTHERS)
def test_such_a_queue_can_be_declared_again_with_the_same_arguments(properties: dict[str, Any]) -> None:
    vhost = quorum_by_default().vhost
    assert vhost.declare_queue("q", **properties) is vhost.declare_queue("q", **properties)


def test_no_type_is_equivalent_to_the_default_type() -> None:
    vhost = quorum_by_default().vhost
    queue = vhost.declare_queue("q", is_durable=True)
    assert vhost.declare_queue("q", is_durable=True) is queue
    assert vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "quorum"}) is queue


def test_another_type_than_the_default_is_refused() -> None:
    vhost = quorum_by_default().vhost
    vhost.declare_queue("q", is_durable=True)
    with pytest.raises(PreconditionFailed, match=r"inequivalent arg 'x-queue-type' .* received 'classic' but current"):
        vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "classic"})


def test_an_argument_that_the_default_type_does_not_support_is_refused() -> None:
    with pytest.raises(PreconditionFailed, match=r"'x-max-priority' .* of queue type rabbit_quorum_queue"):
        quorum_by_default().vhost.declare_queue("q", is_durable=True, arguments={"x-max-priority": 3})


def test_existing_queues_keep_their_type_when_the_default_changes() -> None:
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True)
    broker.kernel.describe_vhost("/", default_queue_type="quorum")
    assert queue.arguments == {}
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-queue-type'"):
        broker.vhost.declare_queue("q", is_durable=True)
    assert broker.vhost.declare_queue("q", is_durable=True, arguments={"x-queue-type": "classic"}) is queue


def test_the_default_type_and_its_queues_survive_a_restart() -> None:
    broker = quorum_by_default()
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    restarted = broker.crashed().vhost
    assert restarted.queue("q").arguments == {"x-queue-type": "quorum"}
    assert restarted.declare_queue("r", is_durable=True).stores_all


def test_the_default_of_the_node_applies_to_virtual_hosts_without_one() -> None:
    broker = MemoryBroker(default_queue_type="quorum")
    shop = broker.kernel.declare_vhost("shop", default_queue_type="classic")
    assert broker.vhost.declare_queue("q", is_durable=True).stores_all
    assert not shop.declare_queue("q", is_durable=True).stores_all
    assert (broker.vhost.queues.default_type, shop.queues.default_type) == ("quorum", "classic")


def test_an_unknown_default_type_is_refused() -> None:
    broker = MemoryBroker()
    with pytest.raises(PreconditionFailed, match="unsupported default queue type 'ring'"):
        broker.kernel.describe_vhost("/", default_queue_type="ring")
    with pytest.raises(PreconditionFailed, match="unsupported default queue type 'x'"):
        broker.kernel.declare_vhost("shop", default_queue_type="x")
    assert set(broker.kernel.vhost_by_name) == {"/"}
    assert broker.vhost.record.default_queue_type == ""
