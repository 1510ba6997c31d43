"""What a deleted virtual host leaves behind in reference cycles: little, and nothing that a collection does not free.

Its parts refer to each other, so Python's collector frees it and not a reference count. Administrators delete virtual
hosts seldom, the young generations free one that did not live long, and the collection that comes when memory is short
(``gateway.collector``) frees the others. What stays has to be small, without a queue, binding or message in it.
"""

import gc
import sys

from gateway.testing import MemoryBroker, Recipient

#: Bytes that a deleted virtual host may leave until the next collection.
MOST = 16 * 1024

#: What may be many in a virtual host. The default exchange is not among what is deleted, so there is one ``Exchange``.
MANY = {"Queue", "Binding", "Message", "QueuedMessage", "Session", "Consumer"}


def use_and_delete(broker: MemoryBroker) -> None:
    vhost = broker.kernel.declare_vhost("other")
    for number in range(50):
        queue = vhost.declare_queue(f"q{number}", is_durable=True, arguments={"x-message-ttl": 60_000})
        vhost.bind(vhost.exchange("amq.topic"), queue, f"k{number}")
        worker = Recipient()
        worker.consume(queue, prefetch=1)
    broker.commit()
    broker.kernel.delete_vhost("other")
    for _ in range(3):
        broker.advance(1)
        broker.commit()


def test_a_deleted_virtual_host_leaves_little_and_none_of_what_was_in_it() -> None:
    broker = MemoryBroker()
    use_and_delete(broker)  # what is made once and kept does not count
    gc.collect()
    gc.disable()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        use_and_delete(broker)
        gc.collect()
        left = [type(each).__qualname__ for each in gc.garbage]
        size = sum(map(sys.getsizeof, gc.garbage))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert "VirtualHost" in left, "it leaves no cycles any more: this test and its limits can go"
    assert not MANY.intersection(left)
    assert left.count("Exchange") <= 1
    assert size <= MOST
