"""Leaks of memory: the messages and connections that live in a node after all clients have left."""

import gc
from collections import Counter
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.ledger import Delivery
from gateway.net.machine import Machine

#: Messages that may live besides those that queues and topics keep.
_SPARE: Final = 8

#: The classes whose objects are counted, with their subclasses.
_COUNTED: Final = (Message, Delivery, Machine)


class LivingObjects:
    """Counts the objects that were made since its own making, and still live. Nothing is collected in between."""

    def __init__(self) -> None:
        self._before = _count_by_class()

    def excess(self, broker: Broker) -> str:
        """Return what lives although no client is there that needs it; empty if there is no such object.

        Objects of an earlier process in the same run count too: call it for the first one only.
        """
        living = {kind: count - self._before[kind] for kind, count in _count_by_class().items()}
        may_live: dict[type, int] = {Message: _kept_messages(broker) + _SPARE}
        return ", ".join(
            f"{count} of {kind.__name__}" for kind, count in living.items() if count > may_live.get(kind, 0)
        )


def _count_by_class() -> Counter[type]:
    counts: Counter[type] = Counter()
    for kind, count in Counter(map(type, gc.get_objects())).items():
        for counted in _COUNTED:
            if issubclass(kind, counted):
                counts[counted] += count
    return counts


def _kept_messages(broker: Broker) -> int:
    """Return the number of messages in queues, delayed and held ones too, retained, in wills, and kept by exchanges."""
    kept = 0
    for vhost in broker.vhost_by_name.values():
        kept += len(vhost.retained) + len(vhost.wills) + sum(map(len, vhost.queue_by_name.values()))
        kept += sum(queue.delayed_count + queue.pending_dead_letter_count for queue in vhost.queue_by_name.values())
        kept += vhost.keeping.room.count
    return kept
