"""The table of queue features: each is listed here, and built for a queue whose settings require it.

To add a feature, add a module beside this one and a row here. Rows are in calling order: deduplication before delays,
so that a repeated message is not delayed; limits before expiry, so that the new head is checked; dead-lettering last.
The features of plugins follow them.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.kernel.features.archiving import archiving
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.features.dead_letter import dead_letter
from gateway.kernel.features.deduplication import deduplication
from gateway.kernel.features.delaying import delaying
from gateway.kernel.features.delivery_limit import delivery_limit
from gateway.kernel.features.expire_anywhere import expire_anywhere
from gateway.kernel.features.lease import lease
from gateway.kernel.features.max_length import max_length
from gateway.kernel.features.message_ttl import message_ttl
from gateway.kernel.features.retention import retention
from gateway.kernel.features.tracing import tracing
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.streams.stream import Stream

Build: TypeAlias = Callable[[Queue, FeatureContext], QueueFeature | None]
"""Returns the feature for a queue, ``None`` if its settings do not require it."""

BuildForStream: TypeAlias = Callable[[Stream, FeatureContext], QueueFeature | None]
"""Returns the feature for a stream, ``None`` if its settings do not require it."""

FEATURES: Final[tuple[Build, ...]] = (
    lease,
    deduplication,
    delaying,
    delivery_limit,
    max_length,
    message_ttl,
    expire_anywhere,
    archiving,
    tracing,
    dead_letter,
)

STREAM_FEATURES: Final[tuple[BuildForStream, ...]] = (retention, archiving, tracing)
"""The features of streams; the others do not apply, because messages stay in a stream."""


def features_for(queue: QueueLike, context: FeatureContext) -> tuple[QueueFeature, ...]:
    """Return the features that the settings of a queue or stream require."""
    built: list[QueueFeature | None] = []
    if isinstance(queue, Queue):
        built = [*(build(queue, context) for build in FEATURES), *context.offered.features_for(queue)]
    elif isinstance(queue, Stream):
        built = [build_for_stream(queue, context) for build_for_stream in STREAM_FEATURES]
    return tuple(feature for feature in built if feature is not None)
