"""The protocols the load generator speaks, as a table: one row a protocol."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from benchmarks.load.amqp.lane import open_lanes as open_amqp_lanes
from benchmarks.load.lane import Lane
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP, Workload


class OpenLanes(Protocol):
    """Sets up what a workload needs on the broker that listens on a port of loopback, until the context ends."""

    def __call__(self, port: int, workload: Workload, *, consume: bool) -> AbstractContextManager[Sequence[Lane]]: ...


LANES: Final[Mapping[str, OpenLanes]] = {
    AMQP: open_amqp_lanes,
}


def open_lanes(broker: Broker, workload: Workload, *, consume: bool = True) -> AbstractContextManager[Sequence[Lane]]:
    """Open the lanes of a workload in its protocol; nobody consumes yet unless told so."""
    return LANES[workload.protocol](broker.ports[workload.protocol], workload, consume=consume)
