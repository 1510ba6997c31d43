"""Filling durable queues with many messages, and what a takeover of them takes."""

from pathlib import Path
from typing import Final

from pamqp import commands

from tests.clusters.gateway_cluster import ClusterNode
from tests.clusters.links import AmqpLink

#: Published between two waits for confirms.
_BLOCK: Final = 2_000


def fill(node: ClusterNode, queues: list[str], count: int, size: int) -> None:
    """Publish so many messages of so many bytes to the queues in turn, and wait until all are confirmed."""
    with AmqpLink(node.addresses["amqp"], 60) as link:
        for queue in queues:
            link.declare(queue)
        link.call(commands.Confirm.Select())
        content = b"x" * size
        sent = confirmed = 0
        while confirmed < count:
            while sent < count and sent - confirmed < _BLOCK:
                link.publish(queues[sent % len(queues)], content)
                sent += 1
            answer = link.next_method()
            assert isinstance(answer, commands.Basic.Ack), answer
            confirmed = answer.delivery_tag if answer.multiple else confirmed + 1


def depths(node: ClusterNode, queues: list[str]) -> list[int]:
    """Return the numbers of messages."""
    with AmqpLink(node.addresses["amqp"], 60) as link:
        return [link.declare(queue) for queue in queues]


def peak_memory(node: ClusterNode) -> int:
    """Return the highest resident memory of a node in bytes."""
    return node._status("VmHWM")


def reset_peak(node: ClusterNode) -> None:
    """Begin to measure the highest resident memory anew."""
    Path(f"/proc/{node.child.pid}/clear_refs").write_text("5")
