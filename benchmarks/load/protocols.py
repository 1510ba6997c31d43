"""The protocols of the load generator's rigs, as tables: one row each."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from benchmarks.load.amqp.lane import open_lanes as open_amqp_lanes
from benchmarks.load.client_rig import ClientRig, ExchangeLane, QueueLane
from benchmarks.load.running import Broker
from benchmarks.load.stomp.lane import open_lanes as open_stomp_lanes
from benchmarks.load.workloads import AMQP, STOMP, WEB_STOMP, Workload

#: The ports of a broker on loopback, by protocol.
Ports: TypeAlias = Mapping[str, int]

OpenLanes: TypeAlias = Callable[[Ports, Workload], AbstractContextManager[Sequence[ClientRig]]]
OpenExchangeLanes: TypeAlias = Callable[[Ports, Workload], AbstractContextManager[Sequence[ExchangeLane]]]


class OpenQueueLanes(Protocol):
    """Sets up the clients of a workload until the context ends, without consumers by default."""

    def __call__(
        self, ports: Ports, workload: Workload, *, consume: bool = True
    ) -> AbstractContextManager[Sequence[QueueLane]]: ...


#: For messages in flight: the consumers exist from the start.
LANES: Final[Mapping[str, OpenLanes]] = {
    AMQP: open_amqp_lanes,
    STOMP: open_stomp_lanes,
    WEB_STOMP: open_stomp_lanes,
}

#: For messages that are sent one by one.
EXCHANGE_LANES: Final[Mapping[str, OpenExchangeLanes]] = {
    AMQP: open_amqp_lanes,
    STOMP: open_stomp_lanes,
    WEB_STOMP: open_stomp_lanes,
}

#: For messages that wait, or are confirmed one by one.
QUEUE_LANES: Final[Mapping[str, OpenQueueLanes]] = {
    AMQP: open_amqp_lanes,
}


def open_lanes(broker: Broker, workload: Workload) -> AbstractContextManager[Sequence[ClientRig]]:
    """Open the rigs of a workload in its protocol."""
    return LANES[workload.protocol](broker.ports, workload)


def open_exchange_lanes(broker: Broker, workload: Workload) -> AbstractContextManager[Sequence[ExchangeLane]]:
    """Open the rigs of a workload in its protocol, for messages that are sent one by one."""
    return EXCHANGE_LANES[workload.protocol](broker.ports, workload)


def open_queue_lanes(
    broker: Broker, workload: Workload, *, consume: bool = True
) -> AbstractContextManager[Sequence[QueueLane]]:
    """Open the rigs of a workload in its protocol, for messages that may wait; without consumers by default."""
    return QUEUE_LANES[workload.protocol](broker.ports, workload, consume=consume)
