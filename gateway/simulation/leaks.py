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

#: The generation of new objects, for the collector of garbage.
_YOUNGEST: Final = 0

#: The classes whose objects are counted, with their subclasses.
_COUNTED: Final = (Message, Delivery, Machine)


class LivingObjects:
    """Counts the objects that were made since its own making, and still live. Nothing is collected in between.

    Those that live before leave the youngest generation, so that the others are counted alone.
    """

    def __init__(self) -> None:
        gc.collect(_YOUNGEST)

    def excess(self, broker: Broker) -> str:
        """Return what lives although no client is there that needs it; empty if there is no such object.

        Objects of an earlier process in the same run count too: call it for the first one only.
        """
        living = _count_of_youngest()
        may_live: dict[type, int] = {Message: _kept_messages(broker) + _SPARE}
        return ", ".join(
            f"{count} of {kind.__name__}" for kind, count in living.items() if count > may_live.get(kind, 0)
        )


def _count_of_youngest() -> Counter[type]:
    counts: Counter[type] = Counter()
    for kind, count in Counter(map(type, gc.get_objects(_YOUNGEST))).items():
        for counted in _COUNTED:
            if issubclass(kind, counted):
                counts[counted] += count
    return counts


def _kept_messages(broker: Broker) -> int:
    """Return the number of messages in queues, delayed and held ones too, in wills, kept by exchanges, and retained.

    Those of the broker's own topics are retained too.
    """
    kept = 0
    for vhost in broker.vhost_by_name.values():
        kept += len(list(vhost.retained)) + len(vhost.wills) + sum(map(len, vhost.queue_by_name.values()))
        kept += sum(queue.delayed_count + queue.pending_dead_letter_count for queue in vhost.queue_by_name.values())
        kept += vhost.keeping.room.count
    return kept
