"""The table of curves, one row each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.curves import shapes
from benchmarks.curves.point import Point

_DECADES: Final = (1, 10, 100, 1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Curve:
    """A dimension: its ``name``, the ``axis`` of its plot, what the messages are, the sizes, and the measurement."""

    name: str
    axis: str
    messages: str
    sizes: Sequence[int]
    measure: Callable[[Path, int], Point]


CURVES: Final = (
    Curve(
        "size",
        "bytes of a message",
        "AMQP, 1 to 1, acknowledged automatically",
        (10, 100, 1_000, 10_000, 100_000, 1_000_000, 16 << 20),
        shapes.by_size,
    ),
    Curve(
        "connections",
        "idle MQTT connections",
        "AMQP, 100 bytes, 1 to 1, beside the idle connections",
        _DECADES,
        shapes.by_connections,
    ),
    Curve(
        "queues",
        "durable queues",
        "AMQP, 100 bytes, transient with confirms, to the queues in turn, which keep ten each",
        _DECADES,
        shapes.by_queues,
    ),
    Curve("bindings", "patterns of a topic exchange", "AMQP, 100 bytes, one matches", _DECADES, shapes.by_bindings),
    Curve(
        "subscriptions",
        "MQTT subscriptions",
        "MQTT QoS 0, 100 bytes, 1 to 1, beside the subscriptions",
        _DECADES,
        shapes.by_subscriptions,
    ),
    Curve(
        "consumers",
        "consumers of one queue",
        "AMQP, 100 bytes, transient with confirms, acknowledged automatically",
        (1, 10, 100, 1_000, 5_000),
        shapes.by_consumers,
    ),
    Curve(
        "backlog",
        "messages that wait",
        "AMQP, 1 KiB, persistent, drained with acknowledgements",
        (1_000, 10_000, 100_000, 1_000_000),
        shapes.by_backlog,
    ),
)
