"""A search among all queues, in small steps."""

from collections.abc import Callable, Generator
from itertools import islice
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.queueing.queue_like import QueueLike

#: Queues looked at in one step.
_BATCH: Final = 500


def any_queue(broker: Broker, matches: Callable[[QueueLike], bool]) -> Generator[None, None, bool]:
    """Return whether some queue matches."""
    for vhost in list(broker.vhost_by_name.values()):
        queues = iter(list(vhost.queue_by_name.values()))
        while batch := list(islice(queues, _BATCH)):
            if any(map(matches, batch)):
                return True
            yield
    return False
